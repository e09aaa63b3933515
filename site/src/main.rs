//! `anabranch-site ROOT OUT`: renders README, guides and the publications' texts below ROOT into OUT as HTML.
//!
//! The site keeps the folders of the repository: `docs/report.md` becomes `docs/report.html`, and a `README.md` the
//! `index.html` of its folder. Links between pages follow; a file that a page links to is copied; a link to nothing is
//! an error. `make site` puts the reports of the publications and the API documentation beside them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

const STYLE: &str = include_str!("style.css");

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [root, out] = &arguments[..] else {
        eprintln!("usage: anabranch-site ROOT OUT");
        return ExitCode::from(2);
    };
    match build(root, out) {
        Ok(pages) => {
            println!("{pages} pages in {}", out.display());
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A page: its source below the root, and its title.
#[derive(Clone, Debug)]
struct Page {
    source: PathBuf,
    title: String,
}

/// Everything that the site has.
struct Site<'a> {
    root: &'a Path,
    out: &'a Path,
    guides: Vec<Page>,
    papers: Vec<Page>,
}

/// Builds the site; the number of its pages.
fn build(root: &Path, out: &Path) -> Result<usize, String> {
    let guides = markdown(&root.join("docs"))?;
    let papers = folders(&root.join("papers"))?.into_iter().map(|folder| folder.join("README.md"));
    let page = |file: PathBuf| -> Result<Page, String> {
        let source = file.strip_prefix(root).map_err(|error| error.to_string())?.to_owned();
        Ok(Page { title: title(&read(&file)?).unwrap_or_else(|| source.display().to_string()), source })
    };
    let site = Site {
        root,
        out,
        guides: guides.into_iter().map(page).collect::<Result<_, _>>()?,
        papers: papers.filter(|file| file.is_file()).map(page).collect::<Result<_, _>>()?,
    };
    let mut waiting: Vec<PathBuf> =
        site.guides.iter().chain(&site.papers).map(|page| page.source.clone()).collect();
    waiting.push(PathBuf::from("README.md"));
    let mut done = BTreeSet::new();
    while let Some(source) = waiting.pop() {
        if done.insert(source.clone()) {
            waiting.extend(site.render(&source)?);
        }
    }
    Ok(done.len())
}

impl Site<'_> {
    /// Renders a page and copies the files that it links to; the pages that it links to.
    fn render(&self, source: &Path) -> Result<Vec<PathBuf>, String> {
        let text = read(&self.root.join(source))?;
        let (mut pages, mut faults) = (Vec::new(), Vec::new());
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_HEADING_ATTRIBUTES | Options::ENABLE_STRIKETHROUGH;
        let events = with_anchors(Parser::new_ext(&text, options).collect());
        let events = events.into_iter().map(|event| match event {
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let dest_url = self.link(source, dest_url, &mut pages, &mut faults);
                Event::Start(Tag::Link { link_type, dest_url, title, id })
            }
            Event::Start(Tag::Image { link_type, dest_url, title, id }) => {
                let dest_url = self.link(source, dest_url, &mut pages, &mut faults);
                Event::Start(Tag::Image { link_type, dest_url, title, id })
            }
            other => other,
        });
        let mut body = String::new();
        html::push_html(&mut body, events);
        if !faults.is_empty() {
            return Err(format!("{}: links to nothing: {}", source.display(), faults.join(", ")));
        }
        let title = title(&text).unwrap_or_else(|| "Anabranch".to_owned());
        let place = self.out.join(target(source));
        write(&place, self.page(source, &title, &body).as_bytes())?;
        Ok(pages)
    }

    /// The page around a body.
    fn page(&self, source: &Path, title: &str, body: &str) -> String {
        let up = "../".repeat(source.components().count() - 1);
        let list = |pages: &[Page]| -> String {
            let entry = |page: &Page| {
                let here = if page.source == source { " aria-current=\"page\"" } else { "" };
                let place = target(&page.source).display().to_string();
                format!("<li><a href=\"{up}{place}\"{here}>{}</a></li>", escaped(&page.title))
            };
            pages.iter().map(entry).collect()
        };
        let report = match self.papers.iter().any(|page| page.source == source) {
            true => "<p><a href=\"report.html\">All claims with their verdicts, tables and figures</a></p>",
            false => "",
        };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:\">\
             <title>{title} · Anabranch</title><style>{STYLE}</style></head><body>\
             <p class=\"top\"><a href=\"{up}index.html\">Anabranch</a> · <a href=\"#site\">Publications and guides</a></p>\
             <nav id=\"site\" aria-label=\"Site\"><p><a href=\"{up}index.html\">Anabranch</a></p>\
             <h2>Publications</h2><ul>{papers}</ul><h2>Guides</h2><ul>{guides}</ul>\
             <h2>API</h2><ul><li><a href=\"{up}api/anabranch_proto/index.html\">Crates</a></li></ul></nav>\
             <main>{report}{body}</main></body></html>\n",
            title = escaped(title),
            papers = list(&self.papers),
            guides = list(&self.guides),
        )
    }

    /// Where a link of `source` leads in the site; notes pages to be rendered and links to nothing.
    fn link<'t>(
        &self,
        source: &Path,
        link: CowStr<'t>,
        pages: &mut Vec<PathBuf>,
        faults: &mut Vec<String>,
    ) -> CowStr<'t> {
        if link.contains("://") || link.starts_with('#') || link.starts_with("mailto:") {
            return link;
        }
        let (place, fragment) =
            link.split_once('#').map_or((&*link, None), |(place, end)| (place, Some(end)));
        let Some(file) = normal(&source.parent().unwrap_or(Path::new("")).join(place)) else {
            faults.push(link.to_string());
            return link;
        };
        let there = self.root.join(&file);
        let file =
            if there.is_dir() && there.join("README.md").is_file() { file.join("README.md") } else { file };
        let there = self.root.join(&file);
        let up = "../".repeat(source.components().count() - 1);
        let fragment = fragment.map(|fragment| format!("#{fragment}")).unwrap_or_default();
        if there.extension().is_some_and(|end| end == "md") && there.is_file() {
            pages.push(file.clone());
        } else if there.is_dir() {
            // A folder of the sources, which the site does not show.
            return format!("{up}index.html").into();
        } else if !there.is_file()
            || fs::read(&there).is_ok_and(|bytes| write(&self.out.join(&file), &bytes).is_err())
        {
            faults.push(link.to_string());
        }
        format!("{up}{}{fragment}", target(&file).display()).into()
    }
}

/// Gives every heading the anchor that links use: its text in small letters, with hyphens.
fn with_anchors(mut events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    for start in 0..events.len() {
        if !matches!(events[start], Event::Start(Tag::Heading { .. })) {
            continue;
        }
        let inside =
            events[start + 1..].iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
        let text: String = inside
            .filter_map(|event| match event {
                Event::Text(text) | Event::Code(text) => Some(text.to_string()),
                _ => None,
            })
            .collect();
        let kept = text.to_lowercase().replace(|c: char| !(c.is_alphanumeric() || " -_".contains(c)), "");
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[start] {
            id.get_or_insert_with(|| kept.trim().replace(' ', "-").into());
        }
    }
    events
}

/// The first heading.
fn title(text: &str) -> Option<String> {
    let mut events = Parser::new(text)
        .skip_while(|event| !matches!(event, Event::Start(Tag::Heading { level: HeadingLevel::H1, .. })));
    events.next()?;
    let inside = events.take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    let words = inside.filter_map(|event| match event {
        Event::Text(text) | Event::Code(text) => Some(text.to_string()),
        _ => None,
    });
    Some(words.collect())
}

/// Where a source stands in the site.
fn target(source: &Path) -> PathBuf {
    match source.file_name().and_then(|name| name.to_str()) {
        Some("README.md") => source.with_file_name("index.html"),
        Some(name) if name.ends_with(".md") => source.with_extension("html"),
        _ => source.to_owned(),
    }
}

/// The path without `.` and `..`; `None`: it leaves the root.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            Component::ParentDir => normal.pop().then_some(())?,
            _ => return None,
        }
    }
    Some(normal)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The Markdown files of a folder, sorted.
fn markdown(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = entries(folder)?;
    files.retain(|file| file.extension().is_some_and(|end| end == "md"));
    Ok(files)
}

/// The folders of a folder, sorted.
fn folders(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = entries(folder)?;
    files.retain(|file| file.is_dir());
    Ok(files)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn write(file: &Path, contents: &[u8]) -> Result<(), String> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(file, contents));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/mptcp.md has two: without a space between them they look like one.
    #[test]
    fn tables_in_a_row_are_apart() {
        assert!(include_str!("style.css").lines().any(|rule| rule.starts_with("table + table { margin-top")));
    }

    /// A phone is 360 pixels wide: padding must not add to a width of 100 %, and long code must be broken.
    #[test]
    fn pages_fit_a_phone() {
        let style = include_str!("style.css");
        assert!(style.contains("* { box-sizing: border-box; }"));
        assert!(style.lines().any(|rule| rule.starts_with("code, pre {") && rule.contains("overflow-wrap: anywhere")));
    }

    #[test]
    fn links_lead_to_pages_and_a_link_to_nothing_is_told() {
        let root = std::env::temp_dir().join(format!("anabranch-site-{}", std::process::id()));
        let file =
            |name: &str, text: &str| write(&root.join(name), text.as_bytes()).expect("it can be written");
        file("README.md", "# A <b>\n[guide](docs/one.md#a-b) [paper](papers/p/)\n");
        file("docs/one.md", "# One\n## A `B`\n[home](../README.md) [file](../papers/p/data.csv)\n");
        file("papers/p/README.md", "# Paper\ntext\n");
        file("papers/p/data.csv", "1\n");
        let out = root.join("out");
        assert_eq!(build(&root, &out), Ok(3));
        let home = read(&out.join("index.html")).expect("the front page");
        assert!(
            home.contains("href=\"docs/one.html#a-b\"") && home.contains("href=\"papers/p/index.html\""),
            "{home}"
        );
        assert!(home.contains("href=\"#site\"") && home.contains("<nav id=\"site\""), "{home}");
        let guide = read(&out.join("docs/one.html")).expect("the guide");
        assert!(guide.contains("<h2 id=\"a-b\">") && guide.contains("href=\"../index.html\""), "{guide}");
        assert!(out.join("papers/p/data.csv").is_file());
        file("docs/two.md", "# Two\n[gone](gone.md) [out](../../../etc/passwd)\n");
        let fault = build(&root, &out).expect_err("two links lead nowhere");
        assert!(fault.contains("docs/two.md: links to nothing: gone.md, ../../../etc/passwd"), "{fault}");
        let _ = fs::remove_dir_all(&root);
    }
}
