//! The sources read as text: no more than three files of the core import each other in a circle, and nothing below the
//! association imports it.
//!
//! A file imports another if a path in it, through whatever re-exports, leads to an item that the other defines.
//! Declaring a module and handing its names on is no import; tests are left out. `cargo test -p anabranch-proto --test
//! circles -- --nocapture` lists the circles.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The names from the root of the crate to a module, or to an item.
type Names = Vec<String>;

/// A module: one file.
struct Module {
    file: String,
    /// What it imports: the path, the name that it has here, and whether it is handed on.
    uses: Vec<(Names, String, bool)>,
    /// The items that it defines.
    items: BTreeSet<String>,
    /// Its code without imports.
    body: String,
}

#[test]
fn no_circle_has_more_than_three_files() {
    let circles = circles(&sources());
    for circle in &circles {
        println!("{} files: {}", circle.len(), circle.join(", "));
    }
    let largest = circles.iter().map(Vec::len).max().unwrap_or(0);
    assert!(largest <= 3, "{largest} files import each other in a circle: {:?}", circles[0]);
}

/// What an association is made of does not know it.
#[test]
fn nothing_below_the_association_imports_it() {
    let parts = ["extension/", "send/", "receive/", "path/", "policy/", "handshake/", "control/", "wire/"];
    let reach = reach(&sources());
    let above = |file: &str| file.starts_with("association/") || file.starts_with("endpoint/");
    let below: Vec<_> =
        reach.iter().filter(|(file, _)| parts.iter().any(|part| file.starts_with(part))).collect();
    assert!(
        below.len() > 80 && parts.iter().all(|part| below.iter().any(|(file, _)| file.starts_with(part)))
    );
    for (file, found) in below {
        let wrong: Vec<_> = found.iter().filter(|other| above(other)).collect();
        assert!(wrong.is_empty(), "{file} leads to {wrong:?}");
    }
    assert!(reach["association/mod.rs"].contains("extension/streams.rs"));
}

#[test]
fn a_circle_through_a_re_export_is_found() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\npub use b::c::Deep;"),
        ("a.rs", "use crate::Deep;\npub struct Here(Deep);"),
        ("b/mod.rs", "pub mod c;\n#[cfg(test)]\nmod tests { use crate::a::Here; }"),
        ("b/c.rs", "// use crate::a::Nothing;\npub struct Deep;\npub fn f(_: super::super::a::Here) {}"),
    ];
    let files = files.map(|(file, text)| (file.to_owned(), text.to_owned()));
    assert_eq!(circles(&files), [["a.rs", "b/c.rs"]]);
    let [library, a, ..] = files;
    assert!(circles(&[library, a]).is_empty());
}

/// Every file below `src`, and its text.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut found) = (vec![root.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the crate") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
                let file =
                    path.strip_prefix(&root).expect("in the crate").to_string_lossy().replace('\\', "/");
                found.push((file, std::fs::read_to_string(&path).expect("a source")));
            }
        }
    }
    found
}

/// The files that can reach each other by imports, the largest circle first.
fn circles(files: &[(String, String)]) -> Vec<Vec<String>> {
    let reach = reach(files);
    let circle = |file: &String| -> Vec<String> {
        reach[file].iter().filter(|other| reach[*other].contains(file)).cloned().collect()
    };
    let found: BTreeSet<Vec<String>> = reach.keys().map(circle).filter(|circle| circle.len() > 1).collect();
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

/// For each file, the files that its imports lead to, directly or through others.
fn reach(files: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let modules: BTreeMap<Names, Module> = files.iter().map(|(file, text)| module(file, text)).collect();
    let imports: BTreeMap<&str, BTreeSet<&str>> =
        modules.iter().map(|(at, module)| (module.file.as_str(), imports(at, &modules))).collect();
    let owned = |found: BTreeSet<&str>| found.into_iter().map(str::to_owned).collect();
    imports.keys().map(|file| ((*file).to_owned(), owned(reachable(file, &imports)))).collect()
}

fn reachable<'a>(from: &str, imports: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&str> = imports[from].iter().copied().collect();
    while let Some(file) = open.pop() {
        if found.insert(file) {
            open.extend(&imports[file]);
        }
    }
    found
}

/// The files of the items that a module names.
fn imports<'a>(at: &Names, modules: &'a BTreeMap<Names, Module>) -> BTreeSet<&'a str> {
    let own = &modules[at];
    let named =
        own.uses.iter().filter(|(_, name, handed_on)| !handed_on || words(&own.body).any(|w| w == name));
    let inline = inline_paths(&own.body);
    let paths = named.map(|(path, ..)| path.clone()).chain(inline);
    let files = paths.filter_map(|path| resolve(at, &path, modules, 0));
    files.filter(|file| *file != own.file).collect()
}

/// The file of the item that a path in a module leads to; `None` if that is in another crate.
fn resolve<'a>(
    at: &[String],
    path: &[String],
    modules: &'a BTreeMap<Names, Module>,
    depth: u32,
) -> Option<&'a str> {
    let module = modules.get(at)?;
    let Some((first, rest)) = path.split_first() else { return Some(&module.file) };
    let child = [at, std::slice::from_ref(first)].concat();
    match first.as_str() {
        "crate" => resolve(&[], rest, modules, depth),
        "self" => resolve(at, rest, modules, depth),
        "super" => resolve(at.split_last()?.1, rest, modules, depth),
        _ if modules.contains_key(&child) => resolve(&child, rest, modules, depth),
        _ if module.items.contains(first) => Some(&module.file),
        _ if depth == 8 => None,
        _ => module.uses.iter().find_map(|(path, name, _)| {
            let local = ["crate", "self", "super"].contains(&path[0].as_str())
                || modules.contains_key(&[at, &path[..1]].concat());
            let whole = if name == "*" { [path, std::slice::from_ref(first)].concat() } else { path.clone() };
            let leads = local && (name == first || name == "*");
            leads.then(|| resolve(at, &[&whole, rest].concat(), modules, depth + 1)).flatten()
        }),
    }
}

fn module(file: &str, text: &str) -> (Names, Module) {
    let mut at: Names = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    at.pop_if(|last| last == "mod" || (file == "lib.rs" && last == "lib"));
    let code = without_tests(&code_only(text));
    let (mut uses, mut body) = (Vec::new(), String::new());
    // A statement ends at a semicolon or a brace; that of an import holds braces itself.
    let mut rest = code.as_str();
    while let Some(start) = next_use(rest) {
        let end = start + rest[start..].find(';').unwrap_or(rest.len() - start);
        let handed_on = rest[..start].trim_end().ends_with("pub") || rest[..start].trim_end().ends_with(')');
        tree(&[], &rest[start + 4..end], handed_on, &mut uses);
        body.push_str(&rest[..start]);
        rest = &rest[end..];
    }
    body.push_str(rest);
    let kinds = ["struct", "enum", "trait", "fn", "const", "static", "type", "macro_rules"];
    let all: Vec<&str> = words(&body).collect();
    let items =
        all.windows(2).filter(|pair| kinds.contains(&pair[0])).map(|pair| pair[1].to_owned()).collect();
    (at, Module { file: file.to_owned(), uses, items, body })
}

/// Where the next import begins.
fn next_use(code: &str) -> Option<usize> {
    let begins =
        |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '+' || c == '#');
    code.match_indices("use ").map(|(at, _)| at).find(|at| begins(*at))
}

/// The paths of an import, `a::{b, c::d}` taken apart.
fn tree(prefix: &[String], text: &str, handed_on: bool, out: &mut Vec<(Names, String, bool)>) {
    let (head, inner) = match text.split_once('{') {
        Some((head, inner)) => (head, Some(inner.trim_end().trim_end_matches('}'))),
        None => (text, None),
    };
    let (head, alias) =
        head.split_once(" as ").map_or((head, None), |(head, alias)| (head, Some(alias.trim())));
    let steps = head.split("::").map(str::trim).filter(|step| !step.is_empty()).map(str::to_owned);
    let mut path: Names = prefix.iter().cloned().chain(steps).collect();
    let Some(inner) = inner else {
        let Some(last) = path.last().cloned() else { return };
        let star = path.pop_if(|last| last == "*" || (last == "self" && !prefix.is_empty())).is_some();
        let own = if star && last == "self" { path.last().cloned().unwrap_or_default() } else { last };
        return out.push((path, alias.map_or(own, str::to_owned), handed_on));
    };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in inner.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if c == ',' && depth == 0 {
            tree(&path, &inner[start..at], handed_on, out);
            start = at + 1;
        }
    }
    tree(&path, &inner[start..], handed_on, out);
}

/// Paths of two names and more that stand in the code: `crate::a::B`, `a::b(…)`.
fn inline_paths(body: &str) -> Vec<Names> {
    let apart = |c: char| !(c.is_alphanumeric() || c == '_' || c == ':');
    let paths = body.split(apart).map(|path| path.trim_matches(':')).filter(|path| path.contains("::"));
    let names = |path: &str| path.split("::").map(str::to_owned).collect::<Names>();
    // `pub(in crate::a)` is no import.
    let seen_by: BTreeSet<&str> =
        body.split("(in ").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    paths.filter(|path| !seen_by.contains(path)).map(names).filter(|path| !path[0].is_empty()).collect()
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// The code without comments and without what stands in strings.
fn code_only(text: &str) -> String {
    let (mut kept, mut chars) = (String::new(), text.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => while chars.next_if(|c| *c != '\n').is_some() {},
            '\'' if chars.next_if_eq(&'"').is_some() => {}
            '"' => {
                while let Some(inside) = chars.next().filter(|c| *c != '"') {
                    if inside == '\\' {
                        chars.next();
                    }
                }
            }
            other => kept.push(other),
        }
    }
    kept
}

/// The code without the items under `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    let mut kept = String::new();
    let mut parts = code.split("#[cfg(test)]");
    kept.push_str(parts.next().unwrap_or(""));
    for part in parts {
        let mut depth = 0;
        let end = part.char_indices().find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth == 0 && (*c == ';' || *c == '}')
        });
        kept.push_str(end.map_or("", |(at, _)| &part[at + 1..]));
    }
    kept
}
