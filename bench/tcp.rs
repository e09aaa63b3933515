//! The kernel's TCP over the loopback interface, for `bench/net`: one thread writes messages of 8 KB, another reads
//! them. Prints the CPU seconds of both for a gigabyte.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const MESSAGE: usize = 8192;
const MESSAGES: usize = 4 * 1_000_000_000 / MESSAGE;

fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut out = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (mut from, _) = listener.accept().expect("a connection");
    let before = cpu();
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        let mut read = 0;
        while let Ok(bytes @ 1..) = from.read(&mut buffer) {
            read += bytes;
        }
        read
    });
    let message = [0; MESSAGE];
    (0..MESSAGES).for_each(|_| out.write_all(&message).expect("the peer reads"));
    drop(out);
    let read = reader.join().expect("it reads");
    println!("kernel TCP       {:5.2} CPU s/GB", (cpu() - before) / (read as f64 / 1e9));
}

/// CPU seconds of this process so far, user and system. Linux counts them in hundredths.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields = stat.rsplit(") ").next().expect("a state").split(' ');
    fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("ticks")).sum::<f64>() / 100.0
}
