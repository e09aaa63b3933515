//! What the tests of pages need: their figures, and what a browser makes of them.

use std::path::Path;

use serde_json::Value;

use crate::support::opened;

/// The figure of the page, or its figures.
pub(crate) fn figure(page: &str) -> Value {
    let begin = r#"<script type="application/json" id="figure">"#;
    let rest = &page[page.find(begin).expect("the page has a figure") + begin.len()..];
    serde_json::from_str(&rest[..rest.find("</script>").expect("it ends")]).expect("it is JSON")
}

/// Behind the page's own script: waits until all is drawn, runs `steps`, and keeps what they return.
pub(crate) fn with_script(page: &str, steps: &str) -> String {
    let script = format!(
        "<script>(async () => {{ const state = document.documentElement.dataset;\n\
         const pause = (time) => new Promise((done) => setTimeout(done, time));\n\
         const charts = document.getElementById('charts');\n\
         const press = async (key) => {{ charts.dispatchEvent(new KeyboardEvent('keydown', {{ key, bubbles: true }})); await pause(50); }};\n\
         while (!state.traces) await pause(20);\n{steps}\n}})().catch((error) => {{ document.documentElement.dataset.error = error.message; }});</script>"
    );
    page.replace("</body>", &format!("{script}</body>"))
}

/// The opening tag of the page's root after the browser has run `page`.
pub(crate) fn root(browser: &str, directory: &Path, page: &str, flags: &[&str]) -> String {
    let file = directory.join("changed.html");
    std::fs::write(&file, page).expect("it can be written");
    let dom = opened(browser, directory, &format!("file://{}", file.display()), flags);
    let start = &dom[dom.find("<html").expect("the browser shows a page")..];
    start[..start.find('>').expect("the element ends")].to_owned()
}
