//! The commands that the documents and `--help` show are commands that the program understands. Those that only
//! simulate are run, each for a moment of simulated time; of the others options, files, publications and claims are
//! looked up.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_lab::claims::{Paper, Plan};
use support::{anabranch, command, stderr};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// A command, and where it stands.
struct Shown {
    place: String,
    words: Vec<String>,
}

/// The documents for users.
fn texts() -> Vec<PathBuf> {
    let markdown = |folder: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir(Path::new(ROOT).join(folder)).expect("the directory is there");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    };
    let readmes = markdown("papers").into_iter().map(|folder| folder.join("README.md"));
    let mut all: Vec<PathBuf> = markdown("docs").into_iter().chain(readmes).collect();
    all.push(Path::new(ROOT).join("README.md"));
    all.retain(|file| file.is_file() && file.extension().is_some_and(|extension| extension == "md"));
    all.sort();
    all
}

/// Every command in the documents and in the examples of `--help`.
fn shown() -> Vec<Shown> {
    let mut all = Vec::new();
    for file in texts() {
        let text = fs::read_to_string(&file).expect("text");
        let name = file.strip_prefix(ROOT).expect("a file of the repository").display().to_string();
        // Every second part is a block of code.
        for (number, part) in text.split("```").enumerate() {
            let commands: Vec<Vec<String>> = match number % 2 {
                1 => part.replace("\\\n", " ").lines().filter_map(in_line).collect(),
                _ => part
                    .split('`')
                    .skip(1)
                    .step_by(2)
                    .filter_map(|code| in_line(&code.replace('\n', " ")))
                    .collect(),
            };
            all.extend(commands.into_iter().map(|words| Shown { place: name.clone(), words }));
        }
    }
    for name in subcommands(&[]) {
        let nested = match name.as_str() {
            "advise" | "model" => subcommands(&[&name]),
            _ => vec![String::new()],
        };
        for below in nested {
            let command = [name.as_str(), below.as_str(), "--help"];
            let command: Vec<&str> = command.into_iter().filter(|word| !word.is_empty()).collect();
            let help = String::from_utf8(anabranch(&command).stdout).expect("text").replace("\\\n", " ");
            let place = format!("anabranch {}", command.join(" "));
            let commands = help.lines().filter_map(in_line);
            all.extend(commands.map(|words| Shown { place: place.clone(), words }));
        }
    }
    all
}

/// The names of the commands that `--help` lists.
fn subcommands(above: &[&str]) -> Vec<String> {
    let help = anabranch(&[above, &["--help"]].concat()).stdout;
    let help = String::from_utf8(help).expect("text");
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names =
        listed.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

/// The words of the command on this line, without the program's name; `None` if there is none, or one in which
/// something is left out.
fn in_line(line: &str) -> Option<Vec<String>> {
    let line = line.trim_start();
    let line = line.strip_prefix("$ ").unwrap_or(line).strip_prefix("anabranch ")?;
    let words = words(line);
    let stands_for = |word: &String| {
        let value = word.rsplit('=').next().unwrap_or(word);
        word.contains('…')
            || word.contains("i/n")
            || word == "..."
            || value.len() > 1 && value.chars().all(|c| c.is_ascii_uppercase() || c == '.')
    };
    let name = words.first()?;
    // A name alone is how a text calls a command.
    let alone = words.len() == 1
        && !["rules", "policies", "keys", "reproduce", "lab", "serve"].contains(&name.as_str())
        || words.len() == 2 && name == "model";
    let left_out =
        alone || words.iter().any(stands_for) || !name.starts_with(|c: char| c.is_ascii_lowercase());
    (!left_out).then_some(words)
}

/// The words of a line as a shell divides it, up to a comment, a pipe or the next command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    for c in line.chars() {
        match (quote, c) {
            (Some(end), _) if c == end => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#' | '|' | '&' | '>' | ';') if word.is_none() => break,
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// What is wrong with a command, if anything.
fn fault(shown: &Shown) -> Option<String> {
    let place = tempfile::tempdir().expect("a directory");
    let here = place.path();
    for folder in ["scenarios", "papers", "tests"] {
        std::os::unix::fs::symlink(Path::new(ROOT).join(folder), here.join(folder)).expect("linked");
    }
    let words: Vec<&str> = shown.words.iter().map(String::as_str).collect();
    let said = missing_file(&words).or_else(|| match words[0] {
        "reproduce" => understood(&words).or_else(|| unknown_claim(&words)),
        "run" | "diff" if !words.contains(&"--watch") && is_ours(&words) => run_for_a_moment(&words, here),
        "model" | "rules" | "policies" | "keys" | "trace" => ran(&words, here, &[0]),
        _ => understood(&words),
    });
    said.map(|said| format!("{}: anabranch {}\n{said}", shown.place, shown.words.join(" ")))
}

/// Whether its scenario is in the repository.
fn is_ours(words: &[&str]) -> bool {
    words.get(1).is_some_and(|file| file.starts_with("scenarios/") || file.starts_with("papers/"))
}

fn missing_file(words: &[&str]) -> Option<String> {
    let ours =
        |word: &&&str| ["scenarios/", "papers/", "tests/"].iter().any(|folder| word.starts_with(folder));
    let missing = words.iter().filter(ours).find(|word| !Path::new(ROOT).join(word).exists());
    missing.map(|word| format!("there is no {word}"))
}

/// With `--help` behind them, the options are read and nothing is done.
fn understood(words: &[&str]) -> Option<String> {
    // What stands behind `--` belongs to another program.
    let own = words.split(|word| *word == "--").next().unwrap_or(words);
    let output = anabranch(&[own, &["--help"]].concat());
    (!output.status.success()).then(|| stderr(&output))
}

fn run_for_a_moment(words: &[&str], here: &Path) -> Option<String> {
    // In a moment there is no packet of which one could ask, or that could be drawn.
    let timed = ["--msc", "--packet"].iter().any(|option| words.contains(option));
    let short = ["--set", "stop=2 ms", "--set", "measure=[\"0 ms\", \"1 ms\"]"];
    let stop: &[&str] = if timed { &[] } else { &short };
    ran(&[words, stop].concat(), here, &[0, 1])
}

/// Runs the command in `here`, where the folders of the repository are.
fn ran(words: &[&str], here: &Path, expected: &[i32]) -> Option<String> {
    let output = command(words).current_dir(here).output().expect("the binary runs");
    let right = output.status.code().is_some_and(|status| expected.contains(&status));
    (!right || stderr(&output).starts_with("error")).then(|| stderr(&output))
}

/// A claim that no publication has, or not the one that is named.
fn unknown_claim(words: &[&str]) -> Option<String> {
    let after = |option: &str| -> Vec<&str> {
        words.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1]).collect()
    };
    let name = words.get(1).filter(|word| !word.starts_with("--"))?;
    let folder = Path::new(ROOT).join("papers").join(name);
    let paper = match Paper::open(&folder) {
        Ok(paper) => paper,
        Err(error) => return Some(error.to_string()),
    };
    let begins = |id: &str, claim: &str| {
        id.strip_prefix(claim).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    for claim in after("--claim") {
        let plan = Plan::new(&paper, Some(1), |id| begins(id, claim)).expect("the claims can be judged");
        if plan.claims() == 0 {
            return Some(format!("there is no claim {claim}"));
        }
    }
    let variants = after("--variant");
    let unknown = variants.iter().find(|name| !paper.variants.iter().any(|variant| variant.name == **name));
    unknown.map(|name| format!("there is no variant {name}"))
}

#[test]
fn commands_that_are_shown_can_be_run() {
    let all = shown();
    assert!(all.len() > 200, "{} commands", all.len());
    let faults: Vec<String> = all.iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

#[test]
fn words_are_those_of_a_shell() {
    let said = words("run 'a b.toml' --set x='1 %' --vary \"k=a b\" --why # a comment");
    assert_eq!(said, ["run", "a b.toml", "--set", "x=1 %", "--vary", "k=a b", "--why"]);
    assert_eq!(words("explain a.pcapng | grep '#'"), ["explain", "a.pcapng"]);
    assert_eq!(in_line("$ anabranch run FILE --why"), None);
    assert_eq!(in_line("anabranch policies").map(|words| words.len()), Some(1));
}
