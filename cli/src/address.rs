//! Addresses that options name.

use std::net::IpAddr;

/// An IP address, in brackets or without. Options for addresses of this host and of captures take no names.
pub(crate) fn ip_address(text: &str) -> Result<IpAddr, String> {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    inner.parse().map_err(|_| {
        "this is no IP address, and names are not looked up here; write 192.0.2.1 or 2001:db8::1".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_brackets_but_names_are_not() {
        let six: IpAddr = "2001:db8::1".parse().unwrap();
        assert_eq!((ip_address("2001:db8::1"), ip_address("[2001:db8::1]")), (Ok(six), Ok(six)));
        for wrong in ["localhost", "[2001:db8::1", "192.0.2", "192.0.2.1:9899", ""] {
            assert!(ip_address(wrong).unwrap_err().contains("write 192.0.2.1"), "{wrong}");
        }
    }
}
