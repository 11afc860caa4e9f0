//! Tests of the HTML pages of `portcullis diff` and `portcullis plan` in headless Chromium.
//!
//! `make test-browser` runs them. Options:
//!
//! - `--check` only reports whether there is a browser.
//! - `--write` takes the screenshot in docs/changes.md.
//!
//! The environment variable `CHROMIUM` names the browser. By default, it is the first of `chromium`, `chromium-browser`
//! and `google-chrome` in `PATH`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the report goes there")]

#[path = "../artifacts/mod.rs"]
mod artifacts;
#[path = "../flux_api/mod.rs"]
mod flux_api;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;

const BROWSER_NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const SCREENSHOT: &str = "docs/changes.png";

type Test = fn(&Browser);

fn main() -> ExitCode {
    let (own, arguments): (Vec<String>, Vec<String>) =
        std::env::args().partition(|argument| ["--check", "--write"].contains(&argument.as_str()));
    let has = |wanted: &str| own.iter().any(|argument| argument == wanted);
    let Some(browser) = Browser::find() else {
        eprintln!("there is no browser: install chromium (apt-get install chromium), or name one in CHROMIUM");
        return ExitCode::FAILURE;
    };
    if has("--check") {
        return ExitCode::SUCCESS;
    }
    if has("--write") {
        browser.take_screenshot();
        return ExitCode::SUCCESS;
    }
    let tests: [(&str, Test); 6] = [
        ("shows_each_root_and_object", shows_each_root_and_object),
        ("filters_by_action_and_text", filters_by_action_and_text),
        ("restores_filters_from_the_link", restores_filters_from_the_link),
        ("escapes_texts_of_objects", escapes_texts_of_objects),
        ("two_thousand_objects_can_be_filtered", two_thousand_objects_can_be_filtered),
        ("a_plan_can_be_filtered", a_plan_can_be_filtered),
    ];
    let case = |(name, test): (&str, Test)| {
        let browser = browser.clone();
        Trial::test(name, move || {
            test(&browser);
            Ok(())
        })
    };
    libtest_mimic::run(&Arguments::from_iter(arguments), tests.map(case).into()).exit_code()
}

fn shows_each_root_and_object(browser: &Browser) {
    let page = Page::of(&shop());
    let dom = browser.dom(&page, "", "");
    assert_eq!(visible(&dom), ["delete Service web", "change Deployment.apps web", "create ConfigMap extra"]);
    for part in ["<a href=\"#root-0\">apps/prod <small>2</small>", "<a href=\"#root-1\">tools <small>1</small>"] {
        assert!(dom.contains(part), "{part} is not in {dom}");
    }
    assert!(dom.contains("<td class=\"removed\">  replicas: 1</td>"), "{dom}");
    assert!(dom.contains("<td class=\"added\">  replicas: 3</td>"), "{dom}");
    assert!(dom.contains("<li><code>spec.replicas</code> <span>apps/prod/web.yaml:4</span>"), "{dom}");
}

fn filters_by_action_and_text(browser: &Browser) {
    let page = Page::of(&shop());
    let uncheck = "document.querySelector('[value=delete]').click();";
    assert_eq!(visible(&browser.dom(&page, "", uncheck)), ["change Deployment.apps web", "create ConfigMap extra"]);
    let write = "const input = document.querySelector('[name=text]'); input.value = 'ReplicAS'; \
                 input.dispatchEvent(new Event('input', {bubbles: true}));";
    let dom = browser.dom(&page, "", write);
    assert_eq!(visible(&dom), ["change Deployment.apps web"]);
    assert!(dom.contains(">1 of 3 objects</output>"), "{dom}");
    assert!(dom.contains("<section id=\"root-1\" hidden"), "a root without matching objects is hidden: {dom}");
    assert!(dom.contains("<a href=\"#root-1\" hidden"), "the link to a root without matching objects is hidden: {dom}");
}

fn restores_filters_from_the_link(browser: &Browser) {
    let page = Page::of(&shop());
    assert_eq!(
        visible(&browser.dom(&page, "#action=delete,create", "")),
        ["delete Service web", "create ConfigMap extra"]
    );
    assert_eq!(visible(&browser.dom(&page, "#text=service", "")), ["delete Service web"]);
    let write = "document.querySelector('[value=create]').click(); document.title = location.hash;";
    assert!(browser.dom(&page, "", write).contains("<title>#action=change%2Cdelete</title>"));
}

fn escapes_texts_of_objects(browser: &Browser) {
    let attack = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";
    let quoted = attack.replace('\'', "''");
    let files = [("evil/kustomization.yaml", format!("configMapGenerator: [{{name: c, literals: ['a={quoted}']}}]\n"))];
    let page = Page::of(&folders(&[], &files.each_ref().map(|(path, text)| (*path, text.as_str()))));
    let dom = browser.dom(&page, "", "");
    assert!(dom.contains("&lt;img src=x"), "{dom}");
    assert!(!dom.contains("<img") && dom.contains("<title>Plan: 1 to create"), "{dom}");
}

fn two_thousand_objects_can_be_filtered(browser: &Browser) {
    let object = |number: usize| {
        format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config-{number:04}}}\ndata: {{key: value}}\n")
    };
    let objects: String = (0..2000).map(object).collect();
    let files = [("large/kustomization.yaml", "resources: [objects.yaml]\n"), ("large/objects.yaml", &*objects)];
    let dom = browser.dom(&Page::of(&folders(&[], &files)), "#text=config-1234", "");
    assert_eq!(visible(&dom), ["create ConfigMap config-1234"]);
}

fn a_plan_can_be_filtered(browser: &Browser) {
    let (code, html, notes) = flux_api::api_with_proxy().plan(&["--output", "html"]);
    assert_eq!(code, Some(0), "{notes}");
    let page = Page(html);
    let all = ["delete ConfigMap shop/old", "keep ConfigMap shop/data", "create ConfigMap shop/new"];
    let dom = browser.dom(&page, "", "");
    assert_eq!(visible(&dom), all);
    assert!(dom.contains("<a href=\"#root-2\">Kept <small>1</small></a>"), "{dom}");
    let dom = browser.dom(&page, "#text=prune:%20disabled", "");
    assert_eq!(visible(&dom), all[1..2], "the reason is searched too");
    assert!(dom.contains("<section id=\"root-0\" hidden"), "{dom}");
    assert_eq!(visible(&browser.dom(&page, "#action=delete", "")), all[..1]);
}

/// Returns the old and the new version of a repository with two roots. One object is changed, one is deleted and one is
/// created.
fn shop() -> TempDir {
    let deployment = |replicas: u32| {
        format!("apiVersion: apps/v1\nkind: Deployment\nspec:\n  replicas: {replicas}\nmetadata: {{name: web}}\n")
    };
    let (before, after) = (deployment(1), deployment(3));
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let extra = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\n";
    folders(
        &[
            ("apps/prod/kustomization.yaml", "resources: [web.yaml, service.yaml]\n"),
            ("apps/prod/web.yaml", &before),
            ("apps/prod/service.yaml", service),
            ("tools/kustomization.yaml", "resources: []\nnamePrefix: ''\n"),
        ],
        &[
            ("apps/prod/kustomization.yaml", "resources: [web.yaml]\n"),
            ("apps/prod/web.yaml", &after),
            ("tools/kustomization.yaml", "resources: [extra.yaml]\n"),
            ("tools/extra.yaml", extra),
        ],
    )
}

/// Creates a temporary folder with the subfolders `old` and `new`. The parameters `old` and `new` contain the path and
/// the content of each file in these subfolders.
fn folders(old: &[(&str, &str)], new: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (side, files) in [("old", old), ("new", new)] {
        fs::create_dir(folder.path().join(side)).unwrap();
        for (path, text) in files {
            let path = folder.path().join(side).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
    folder
}

/// The HTML page that `portcullis diff` prints for the differences between two folders.
struct Page(String);

impl Page {
    fn of(folder: &TempDir) -> Self {
        Self::between(&folder.path().join("old"), &folder.path().join("new"))
    }

    fn between(old: &Path, new: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        let output = command.arg("diff").args([old, new]).args(["--output", "html"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self(String::from_utf8(output.stdout).unwrap())
    }
}

#[derive(Clone)]
struct Browser(PathBuf);

impl Browser {
    fn find() -> Option<Self> {
        let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut found = std::env::split_paths(&path).flat_map(|folder| BROWSER_NAMES.map(|name| folder.join(name)));
        named.or_else(|| found.find(|program| program.is_file())).map(Self)
    }

    /// Opens a page with a URL fragment in the browser, runs a script in the page, and returns the resulting HTML
    /// document.
    fn dom(&self, page: &Page, fragment: &str, script: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        fs::write(&file, page.0.replace("</body>", &format!("<script>{script}</script></body>"))).unwrap();
        let address = format!("file://{}{fragment}", file.display());
        let output = self.command(folder.path()).arg("--dump-dom").arg(address).output().unwrap();
        let dom = String::from_utf8(output.stdout).unwrap();
        assert!(dom.contains("</html>"), "the browser failed: {}", String::from_utf8_lossy(&output.stderr));
        dom
    }

    fn take_screenshot(&self) {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
        let example = repository.join("examples/changes");
        let page = Page::between(&example.join("before"), &example.join("after"));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        fs::write(&file, page.0).unwrap();
        let target = format!("--screenshot={}", repository.join(SCREENSHOT).display());
        let mut command = self.command(folder.path());
        let status = command.args(["--window-size=1000,760", &target]).arg(&file).status().unwrap();
        assert!(status.success(), "the browser failed");
    }

    fn command(&self, profile: &Path) -> Command {
        let mut command = Command::new(&self.0);
        // The sandbox needs privileges that containers do not have. It is not needed, because the pages are our own.
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
        command.arg(format!("--user-data-dir={}", profile.join("profile").display()));
        command
    }
}

/// Returns the titles of the visible objects in an HTML document.
fn visible(dom: &str) -> Vec<String> {
    let objects = dom.split("<details class=\"object\"").skip(1);
    let visible = objects.filter_map(|object| object.split_once('>').filter(|(tag, _)| !tag.contains("hidden")));
    visible.map(|(_, object)| title(object)).collect()
}

/// Returns the title of an object: the text of its `summary` element, without tags. `object` is HTML that begins inside
/// the `details` element of the object.
fn title(object: &str) -> String {
    let summary = object.split_once("</summary>").unwrap().0;
    let mut title = String::new();
    for part in summary.split('<') {
        title.push_str(part.split_once('>').map_or(part, |(_, text)| text));
    }
    title
}
