//! `anabranch new-policy`: creates a crate with a new policy, which builds and is tested.

use std::io;
use std::path::{Path, PathBuf};

use anabranch_proto::Policies;
use clap::ValueEnum;

use crate::DONE;
use crate::output::{fail, note, refuse};

/// The arguments of `anabranch new-policy`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The policy's name in scenarios; also the name of the crate and of its folder
    name: String,
    /// What the policy decides: `route`: the path of a chunk; `window`: how many bytes may be in flight on a path
    #[arg(long, value_enum, default_value_t = Kind::Route)]
    kind: Kind,
    /// The folder to create [default: NAME]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The folder of Anabranch's sources [default: the clone that contains the new folder]
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Kind {
    Route,
    Window,
}

const EXAMPLES: &str = "\
Examples:
  anabranch new-policy nearest
  anabranch new-policy cautious --kind window
  cd nearest && cargo test -- --nocapture

Exit status: 0 done, 2 the input was wrong (also a folder that exists), 1 anything else.";

const CARGO: &str = include_str!("../templates/policy/Cargo.toml.in");
const ROUTE: &str = include_str!("../templates/policy/route.rs.in");
const WINDOW: &str = include_str!("../templates/policy/window.rs.in");
const COMPARE: &str = include_str!("../templates/policy/compare.rs.in");
const SCENARIO: &str = include_str!("../templates/policy/scenario.toml");

/// Creates the crate and returns the exit status.
pub(crate) fn new_policy(arguments: &Arguments) -> u8 {
    let Arguments { name, kind, folder, source } = arguments;
    if !is_name(name) {
        return refuse(format!(
            "`{name}` is no name of a policy: lower-case letters, digits and `-`, a letter first; for example nearest"
        ));
    }
    if let Some(why) = taken(name) {
        return refuse(format!("`{name}` is no name of a policy: {why}; choose another name"));
    }
    let folder = folder.clone().unwrap_or_else(|| PathBuf::from(name));
    if folder.exists() {
        return refuse(format!("{}: exists already; choose another --folder", folder.display()));
    }
    let source = match source {
        Some(source) if !is_source(source) => {
            return refuse(format!("{}: there are no sources of Anabranch here", source.display()));
        }
        Some(source) => std::path::absolute(source).ok(),
        None => clone_around(&folder),
    };
    let Some(source) = source else {
        return refuse(format!(
            "{}: not within a clone of Anabranch, whose crates the policy needs; name the clone with --source DIR",
            folder.display()
        ));
    };
    match write(&folder, name, *kind, &source) {
        Ok(()) => {
            note(format!("made {0}; `cd {0} && cargo test -- --nocapture` tests it", folder.display()));
            DONE
        }
        Err(error) => fail(format!("{}: {error}", folder.display())),
    }
}

fn is_name(name: &str) -> bool {
    let letters = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    letters && name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.ends_with('-')
}

/// Words of the language, of the present and kept for later: no crate can have them as its name.
const KEYWORDS: &str = "abstract as async await become box break const continue crate do dyn else enum extern false final fn \
     for gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait true try \
     type typeof unsafe unsized use virtual where while yield";
/// Crates that every build has, and those that the new crate uses.
const CRATES: &str = "alloc core proc-macro std test anabranch-proto anabranch-sim";
/// Types in the templates, as [`type_name`] makes them.
const TYPES: &str = "Acked Arc Ask Box Choice Config Congestion Loss Lost MakeWindow PathView Policies PolicyError PolicySpec Result \
     Route Sibling Start";

/// Why no new policy can have this name, if that is so.
fn taken(name: &str) -> Option<&'static str> {
    let among = |words: &str, name: &str| words.split_whitespace().any(|word| word == name);
    let policies = Policies::default();
    match name {
        _ if among(KEYWORDS, name) => Some("it is a keyword of Rust, and the crate has the same name"),
        _ if among(CRATES, name) => Some("a crate that the new one uses has this name"),
        _ if policies.route_names().chain(policies.window_names()).any(|built_in| built_in == name) => {
            Some("a policy of this name is built in")
        }
        _ if among(TYPES, &type_name(name)) => Some("a type that its code uses has this name"),
        _ => None,
    }
}

/// Whether the sources of Anabranch are in this folder.
fn is_source(folder: &Path) -> bool {
    ["proto", "sim"].iter().all(|part| folder.join(part).join("Cargo.toml").is_file())
}

/// The clone of Anabranch that contains `folder`, if there is one.
fn clone_around(folder: &Path) -> Option<PathBuf> {
    let folder = std::path::absolute(folder).ok()?;
    folder.ancestors().find(|folder| is_source(folder)).map(Path::to_owned)
}

fn write(folder: &Path, name: &str, kind: Kind, source: &Path) -> io::Result<()> {
    let fill = |template: &str| filled(template, name, kind, source);
    std::fs::create_dir_all(folder.join("src"))?;
    std::fs::create_dir_all(folder.join("tests"))?;
    let policy = if kind == Kind::Route { ROUTE } else { WINDOW };
    std::fs::write(folder.join("Cargo.toml"), fill(CARGO))?;
    std::fs::write(folder.join("src/lib.rs"), fill(policy))?;
    std::fs::write(folder.join("tests/compare.rs"), fill(COMPARE))?;
    std::fs::write(folder.join("scenario.toml"), SCENARIO)?;
    std::fs::write(folder.join(".gitignore"), "/target\n")
}

/// The template with its `{{…}}` placeholders replaced.
fn filled(template: &str, name: &str, kind: Kind, source: &Path) -> String {
    let dependency = |part: &str| {
        let path = source.join(part).display().to_string();
        format!("{{ path = {} }}", serde_json::Value::from(path))
    };
    let (key, before) = if kind == Kind::Route { ("retransmit", "same") } else { ("window", "standard") };
    let replaced = [
        ("{{name}}", name.to_owned()),
        ("{{module}}", name.replace('-', "_")),
        ("{{type}}", type_name(name)),
        ("{{proto}}", dependency("proto")),
        ("{{sim}}", dependency("sim")),
        ("{{key}}", key.to_owned()),
        ("{{before}}", before.to_owned()),
    ];
    replaced.iter().fold(template.to_owned(), |text, (mark, value)| text.replace(mark, value))
}

/// `my-route` as `MyRoute`.
fn type_name(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    name.split('-').map(capital).collect()
}
