//! Tests of the packaging: the chart's values and their documentation, the image, and the workflows, as far as possible
//! without a container engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis::config;
use portcullis::crossplane::configuration::EnvironmentConfigs;
use portcullis::gate::Registry;
use portcullis::yaml;
use serde_json::{Value, json};

#[path = "../examples/chart_schema.rs"]
#[allow(dead_code, reason = "as an example it has a main function")]
mod chart_schema;

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

fn text(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn read(file: &str) -> Value {
    let documents = yaml::read(&text(file), &yaml::Limits::default());
    documents.unwrap_or_else(|error| panic!("{file}: {error}")).remove(0).value
}

fn keys(value: &Value) -> Vec<String> {
    value.as_object().expect("it is an object").keys().cloned().collect()
}

/// Adds the leaves of a nested value to `found`: their paths below `at`, and their values as JSON text.
fn leaves(value: &Value, at: &str, found: &mut BTreeMap<String, String>) {
    match value.as_object().filter(|members| !members.is_empty()) {
        None => drop(found.insert(at.to_owned(), value.to_string())),
        Some(members) => members.iter().for_each(|(key, member)| {
            let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
            leaves(member, &at, found);
        }),
    }
}

#[test]
fn the_charts_readme_lists_every_value_with_its_default() {
    let mut values = BTreeMap::new();
    leaves(&read("charts/portcullis/values.yaml"), "", &mut values);
    let readme = text("charts/portcullis/README.md");
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let mut reported = BTreeMap::new();
    for row in rows {
        let [name, default, what] = row.splitn(3, " | ").collect::<Vec<_>>()[..] else { panic!("{row}") };
        let default: Value =
            serde_json::from_str(default.trim_matches('`')).unwrap_or_else(|error| panic!("{row}: {error}"));
        assert!(!what.trim().is_empty(), "{name} is not explained");
        reported.insert(name.trim_end_matches('`').to_owned(), default.to_string());
    }
    assert_eq!(reported, values);
}

#[test]
fn the_charts_families_are_those_of_the_rules() {
    let families = Registry::standard().families();
    let values = read("charts/portcullis/values.yaml");
    assert_eq!(keys(&values["families"]), families);
    let on: Vec<_> = values["families"].as_object().unwrap().iter().filter(|(_, is_on)| **is_on == true).collect();
    let on: Vec<_> = on.into_iter().map(|(family, _)| family.as_str()).collect();
    assert_eq!(on, Registry::standard().default_families());
    let schema: Value = serde_json::from_str(&text("charts/portcullis/values.schema.json")).unwrap();
    assert_eq!(keys(&schema["properties"]["families"]["properties"]), families);
}

/// The schema lists all rule IDs. So Helm rejects an unknown rule ID, instead of starting a Pod that fails.
#[test]
fn schema_lists_the_rules_mutators_and_deliveries() {
    let committed = text("charts/portcullis/values.schema.json");
    assert!(chart_schema::updated(&committed) == committed, "the schema is out of date: run `make generate`");
    let rules = &read("charts/portcullis/values.schema.json")["definitions"]["ruleOrFamily"]["enum"];
    let names: Vec<_> = rules.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(names.contains(&"OW") && names.contains(&"OW006") && names.contains(&"KZ001"), "{names:?}");
}

#[test]
fn schema_has_every_documented_key_of_the_configuration() {
    let page = text("docs/configuration.md");
    let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let documented = yaml::read(example, &yaml::Limits::default()).unwrap().remove(0).value;
    let schema = read("charts/portcullis/values.schema.json");
    let known = &schema["properties"]["config"]["properties"];
    let missing: Vec<_> = keys(&documented).into_iter().filter(|key| known[key].is_null()).collect();
    assert!(missing.is_empty(), "Helm refuses {missing:?}");
}

/// Regression test for issue 18 (Crossplane, item 5): Helm rejected values of the section `environmentConfigs` that
/// the server accepts.
#[test]
fn schema_has_every_key_and_value_of_environment_configs() {
    let known = &read("charts/portcullis/values.schema.json")["properties"]["config"]["properties"];
    let section = &known["environmentConfigs"]["properties"];
    let read_by_server = EnvironmentConfigs::default().to_value();
    let mut listed = keys(section);
    listed.sort_unstable();
    let mut expected = keys(&read_by_server);
    expected.sort_unstable();
    assert_eq!(listed, expected);
    let refused = config::parse("environmentConfigs: {native: other}\n", "config.yaml", &Registry::standard());
    let message = refused.unwrap_err().to_string();
    let (_, expected) = message.split_once("use one of: ").expect("the message lists the values");
    let expected: Vec<_> = expected.lines().next().unwrap_or_default().split(", ").collect();
    assert_eq!(section["native"]["enum"], json!(expected));
}

/// Checks the JSON schema of the chart values. Each object in the schema, except those in `OPEN`, either lists all its
/// keys, or is a map whose values have the same schema.
#[test]
fn the_schema_rejects_unknown_values() {
    // Values that all subcharts share, and values that the server validates itself.
    const OPEN: [&str; 3] = [
        "/properties/global",
        "/properties/config/properties/exemptions/items",
        "/properties/config/properties/deployers",
    ];
    let schema: Value = serde_json::from_str(&text("charts/portcullis/values.schema.json")).unwrap();
    let mut open = Vec::new();
    walk(&schema, "", &mut |place, value| {
        let is_closed = value["additionalProperties"] == false || value["additionalProperties"].is_object();
        if value["type"] == "object" && !is_closed && !OPEN.contains(&place) {
            open.push(place.to_owned());
        }
    });
    assert!(open.is_empty(), "{open:?}");
}

fn walk(value: &Value, place: &str, visit: &mut impl FnMut(&str, &Value)) {
    visit(place, value);
    if let Some(members) = value.as_object() {
        members.iter().for_each(|(key, member)| walk(member, &format!("{place}/{key}"), visit));
    }
    if let Some(items) = value.as_array() {
        items.iter().enumerate().for_each(|(at, item)| walk(item, &format!("{place}/{at}"), visit));
    }
}

#[test]
fn versions_agree() {
    let chart = read("charts/portcullis/Chart.yaml");
    assert_eq!(chart["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(chart["appVersion"], env!("CARGO_PKG_VERSION"));
    let rust = env!("CARGO_PKG_RUST_VERSION");
    assert!(
        text("Containerfile").contains(&format!("\nARG RUST_IMAGE=docker.io/library/rust:{rust}-bookworm@sha256:")),
        "the image is built with Rust {rust}"
    );
    let pinned = text("tests/e2e/assets/helm/go.mod");
    let helm = pinned.lines().find_map(|line| line.strip_prefix("require helm.sh/helm/v4 ")).expect("Helm is pinned");
    for workflow in ["ci", "release"] {
        let workflow = text(&format!(".github/workflows/{workflow}.yml"));
        assert!(workflow.contains(&format!("with: {{version: {helm}}}")), "{workflow} has another Helm than {helm}");
    }
}

#[test]
fn the_image_has_no_root_and_no_shell() {
    let file = text("Containerfile");
    let last = file.rsplit("\nFROM ").next().expect("it has a stage");
    assert!(last.starts_with("scratch\n"), "{last}");
    for line in ["USER 65532:65532\n", "ENTRYPOINT [\"/portcullis\"]\n"] {
        assert!(last.contains(line), "{line:?} is missing:\n{last}");
    }
    assert!(!last.contains("\nRUN "), "the last stage has no shell to run it:\n{last}");
    let helpers = text("charts/portcullis/templates/_helpers.tpl");
    assert!(helpers.contains("runAsUser: 65532\n"), "the chart runs it as the same user");
}

/// The chart can enable traces in any release, so releases are built with the feature `otlp`. Tests are built with the
/// same feature.
#[test]
fn released_artifacts_have_traces() {
    let makefile = text("Makefile");
    assert!(makefile.contains("\nFEATURES := --features otlp\n"));
    let is_build =
        |line: &&str| ["build", "run", "test", "bench"].iter().any(|verb| line.contains(&format!("cargo {verb} ")));
    let is_other = |line: &str| line.contains("cd fuzz") || line.contains("--manifest-path tools/");
    let of_ours = makefile.lines().filter(is_build).filter(|line| !is_other(line));
    for line in of_ours.filter(|line| line.starts_with('\t')) {
        assert!(line.contains("$(FEATURES)"), "without traces: {line}");
    }
    assert!(text("Containerfile").contains("-unknown-linux-musl\" --features otlp)"));
}

/// The chart uses its `appVersion` as the tag of the image. So a release must push the image with this tag, which does
/// not have the `v` of the git tag.
#[test]
fn release_pushes_the_tag_that_the_chart_pulls() {
    let mut make = Command::new("make");
    make.current_dir(env!("CARGO_MANIFEST_DIR")).args([
        "--dry-run",
        "image-push",
        "PUSH_TO=registry.example/portcullis",
    ]);
    let version = env!("CARGO_PKG_VERSION");
    let pushed = run_successfully(&mut make);
    assert!(pushed.contains(&format!("docker://registry.example/portcullis:{version}\n")), "{pushed}");
    assert!(pushed.contains(&format!("oci-archive:dist/portcullis-{version}-image.tar ")), "{pushed}");
    let workflow = read(".github/workflows/release.yml");
    let pushes = |command: &String| command.starts_with("make image-push PUSH_TO=$IMAGE");
    assert!(commands(&workflow).iter().any(pushes));
    assert_eq!(workflow["env"]["IMAGE"], "ghcr.io/${{ github.repository }}");
}

/// Returns the commands of all steps of a workflow.
fn commands(workflow: &Value) -> Vec<String> {
    let mut commands = Vec::new();
    walk(workflow, "", &mut |place, value| {
        if let Some(command) = value.as_str().filter(|_| place.ends_with("/run")) {
            commands.push(command.to_owned());
        }
    });
    commands
}

fn uses(workflow: &Value) -> Vec<String> {
    let mut uses = Vec::new();
    walk(workflow, "", &mut |place, value| {
        if let Some(action) = value.as_str().filter(|_| place.ends_with("/uses")) {
            uses.push(action.to_owned());
        }
    });
    uses
}

#[test]
fn workflows_use_existing_targets() {
    let makefile = text("Makefile");
    let targets: BTreeSet<_> = makefile.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    for workflow in ["ci", "release"] {
        let workflow = read(&format!(".github/workflows/{workflow}.yml"));
        let named: Vec<_> = commands(&workflow).into_iter().filter(|command| command.starts_with("make ")).collect();
        assert!(!named.is_empty());
        for command in named {
            let words = command.split_whitespace().skip(1).take_while(|word| !word.contains('='));
            words.for_each(|target| assert!(targets.contains(target), "{command}: there is no target {target}"));
        }
        for action in uses(&workflow) {
            let is_here = action.strip_prefix("./").is_some_and(|file| path(file).is_file());
            assert!(is_here || action.contains("@v"), "{action} is not pinned to a version");
        }
        // Workflows run third-party code with read permissions only, unless the job requires more.
        assert_eq!(workflow["permissions"], serde_json::json!({"contents": "read"}));
    }
}

#[test]
fn scripts_are_shell() {
    let tools = ["tools/action/install.sh", "tools/packages/profiled.sh", "tools/packages/static.sh"];
    for script in ["tests/kind/run.sh", ".ci/run"].into_iter().chain(tools) {
        let checked = Command::new("bash").arg("-n").arg(path(script)).output().expect("there is a bash");
        assert!(checked.status.success(), "{script}: {}", String::from_utf8_lossy(&checked.stderr));
    }
}

/// Runs a command. Returns its exit code, and its standard output followed by its standard error.
fn run(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text)
}

#[track_caller]
fn run_successfully(command: &mut Command) -> String {
    let (code, text) = run(command);
    assert_eq!(code, Some(0), "{command:?}: {text}");
    text
}

/// Creates a release archive of the program under test, and builds packages from this archive. The archive always has
/// the name of a statically linked program, even if the program under test is linked dynamically.
fn create_packages(dist: &Path) {
    let version = env!("CARGO_PKG_VERSION");
    let program = dist.join("program");
    fs::create_dir(&program).unwrap();
    // Without debugging information, there is only a tenth of the data to compress.
    let mut strip = Command::new("strip");
    run_successfully(strip.arg("-o").arg(program.join("portcullis")).arg(env!("CARGO_BIN_EXE_portcullis")));
    let archive = dist.join(format!("portcullis-{version}-{}-unknown-linux-musl.tar.gz", std::env::consts::ARCH));
    run_successfully(Command::new("tar").arg("-czf").arg(archive).arg("-C").arg(program).arg("portcullis"));
    let mut python = Command::new("python3");
    python.arg(path("tools/packages/packages.py")).args(["--version", version, "--repository", "example/portcullis"]);
    run_successfully(python.arg("--dist").arg(dist));
}

fn file_for_this_machine(dist: &Path, prefix: &str, part: &str) -> PathBuf {
    let files = fs::read_dir(dist).unwrap().map(|entry| entry.unwrap().path());
    let is_match = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with(prefix) && name.contains(part) && !name.ends_with(".yaml")
    };
    files.into_iter().find(is_match).unwrap_or_else(|| panic!("no {prefix}*{part}*"))
}

#[cfg(target_os = "linux")]
#[test]
fn packages_install_the_command() {
    let dist = tempfile::tempdir().unwrap();
    create_packages(dist.path());
    let version = format!("portcullis {}\n", env!("CARGO_PKG_VERSION"));
    let (wheel, krew) = match std::env::consts::ARCH {
        "x86_64" => ("manylinux_2_17_x86_64", "linux-amd64"),
        _ => ("manylinux_2_17_aarch64", "linux-arm64"),
    };
    let environment = dist.path().join("environment");
    run_successfully(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    let wheel = file_for_this_machine(dist.path(), "portcullis_admission", wheel);
    run_successfully(Command::new(environment.join("bin/pip")).args(["install", "--quiet", "--no-index"]).arg(wheel));
    assert_eq!(run_successfully(Command::new(environment.join("bin/portcullis")).arg("--version")), version);
    // pre-commit installs hooks of the language python in the same way, in a separate virtual environment.
    let hook = dist.path().join("hook");
    run_successfully(Command::new("python3").args(["-m", "venv"]).arg(&hook));
    let mut pip = Command::new(hook.join("bin/pip"));
    pip.args(["install", "--quiet", "--no-index", "--find-links"]).arg(dist.path()).arg(env!("CARGO_MANIFEST_DIR"));
    run_successfully(pip.env("PYTHONDONTWRITEBYTECODE", "1"));
    let entry = &read(".pre-commit-hooks.yaml")[0];
    assert_eq!((&entry["language"], &entry["entry"]), (&json!("python"), &json!("portcullis check")));
    let mut check = Command::new(hook.join("bin/portcullis"));
    let (code, text) = run(check.arg("check").arg(path("examples/getting-started/wrong.yaml")));
    assert!(code == Some(1) && text.contains("KZ001"), "{text}");
    let plugins = dist.path().join("plugins");
    fs::create_dir(&plugins).unwrap();
    let archive = file_for_this_machine(dist.path(), "kubectl-portcullis", krew);
    run_successfully(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&plugins));
    assert_eq!(run_successfully(Command::new(plugins.join("kubectl-portcullis")).arg("--version")), version);
    assert!(plugins.join("LICENSE").is_file(), "krew wants the license in the archive");
    let manifest = fs::read_to_string(dist.path().join("portcullis-krew.yaml")).unwrap();
    let manifest = yaml::read(&manifest, &yaml::Limits::default()).unwrap().remove(0).value;
    let reported = manifest["spec"]["platforms"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["uri"].as_str().unwrap().ends_with(&*archive.file_name().unwrap().to_string_lossy()));
    let sums = run_successfully(Command::new("sha256sum").arg(&archive));
    assert!(sums.starts_with(reported.unwrap()["sha256"].as_str().unwrap()), "{sums}");
}

#[test]
fn every_released_target_has_packages() {
    let platforms = read("tools/packages/platforms.json");
    let listed: BTreeSet<_> =
        platforms.as_array().unwrap().iter().map(|one| one["target"].as_str().unwrap().to_owned()).collect();
    let workflow = read(".github/workflows/release.yml");
    let built = workflow["jobs"]["binaries"]["strategy"]["matrix"]["include"].as_array().unwrap();
    let built: BTreeSet<_> = built.iter().map(|one| one["target"].as_str().unwrap().to_owned()).collect();
    assert_eq!(listed, built);
}

#[cfg(target_os = "linux")]
#[test]
fn the_action_downloads_a_verified_binary() {
    let releases = tempfile::tempdir().unwrap();
    let version = env!("CARGO_PKG_VERSION");
    let release = releases.path().join(format!("v{version}"));
    fs::create_dir(&release).unwrap();
    create_packages(&release);
    let archive = file_for_this_machine(&release, &format!("portcullis-{version}"), std::env::consts::ARCH);
    // A fake `gh`, so that the test needs no network.
    let programs = releases.path().join("programs");
    fs::create_dir(&programs).unwrap();
    fs::write(programs.join("gh"), "#!/bin/sh\necho gh \"$@\"\nexit ${GH_CODE:-0}\n").unwrap();
    run_successfully(Command::new("chmod").arg("+x").arg(programs.join("gh")));
    let search = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let install = |folder: &str, version: &str, gh: &str| {
        let mut command = Command::new(path("tools/action/install.sh"));
        let arch = if std::env::consts::ARCH == "x86_64" { "X64" } else { "ARM64" };
        command.arg(releases.path().join(folder)).env("RUNNER_OS", "Linux").env("RUNNER_ARCH", arch);
        command
            .env("PORTCULLIS_VERSION", version)
            .env("PORTCULLIS_REPOSITORY", "example/portcullis")
            .env("GH_CODE", gh);
        command.env("PATH", &search).env("PORTCULLIS_DOWNLOADS", format!("file://{}", releases.path().display()));
        run(&mut command)
    };
    let sum = run_successfully(Command::new("sha256sum").arg(&archive));
    let name = archive.file_name().unwrap().to_string_lossy();
    let write = |sum: &str| fs::write(release.join("SHA256SUMS"), format!("{sum}  {name}\n")).unwrap();
    write(&"0".repeat(64));
    let (code, text) = install("tampered", version, "0");
    assert_eq!(code, Some(1), "another checksum: {text}");
    write(sum.split(' ').next().unwrap());
    let (code, text) = install("unattested", version, "1");
    assert!(code == Some(1) && text.contains("gh attestation verify"), "no provenance: {text}");
    assert!(
        !releases.path().join("tampered/portcullis").exists()
            && !releases.path().join("unattested/portcullis").exists()
    );
    let (code, text) = install("right", version, "0");
    assert_eq!(code, Some(0), "{text}");
    let reported = run_successfully(Command::new(releases.path().join("right/portcullis")).arg("--version"));
    assert_eq!(reported, format!("portcullis {version}\n"));
    assert!(install("right", version, "1").1.contains("in the cache"), "nothing is downloaded twice");
    assert_eq!(install("missing", "9.9.9", "0").0, Some(3), "the action builds from source");
}

/// Returns an ELF header with one program header. The segment type `segment` determines whether the header looks like
/// that of a static or a dynamic binary.
fn elf(machine: u16, segment: u32) -> Vec<u8> {
    let mut header = vec![0; 64];
    header[..6].copy_from_slice(b"\x7fELF\x02\x01");
    header[18..20].copy_from_slice(&machine.to_le_bytes());
    header[32] = 64;
    header[54] = 56;
    header[56] = 1;
    let mut program = vec![0; 56];
    program[..4].copy_from_slice(&segment.to_le_bytes());
    [header, program].concat()
}

#[test]
fn the_image_archive_is_reproducible_and_rejects_dynamic_binaries() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let (intel, arm, dynamic) = (file("intel", &elf(62, 1)), file("arm", &elf(183, 1)), file("dynamic", &elf(62, 3)));
    let archive = |name: &str, binaries: &[String]| {
        let mut python = Command::new("python3");
        python.arg(path("tools/packages/image.py")).arg("--out").arg(folder.path().join(name));
        python.args([
            "--name",
            "portcullis:1.2.3",
            "--version",
            "1.2.3",
            "--revision",
            "abc",
            "--created",
            "1700000000",
        ]);
        python.args(["--source", "https://example.org/portcullis"]).args(binaries);
        run(&mut python)
    };
    let both = [format!("linux/amd64={intel}"), format!("linux/arm64={arm}")];
    for name in ["one.tar", "two.tar"] {
        let (code, text) = archive(name, &both);
        assert_eq!(code, Some(0), "{text}");
    }
    let bytes = |name: &str| fs::read(folder.path().join(name)).unwrap();
    assert!(bytes("one.tar") == bytes("two.tar"));
    for (binaries, expected) in [
        ([format!("linux/amd64={dynamic}")], "dynamically linked"),
        ([format!("linux/amd64={arm}")], "not a binary for amd64"),
    ] {
        let (code, text) = archive("wrong.tar", &binaries);
        assert!(code == Some(1) && text.contains(expected), "{text}");
    }
    run_successfully(Command::new("tar").arg("-xf").arg(folder.path().join("one.tar")).arg("-C").arg(folder.path()));
    let blob = |digest: &Value| {
        let digest = digest.as_str().unwrap().strip_prefix("sha256:").unwrap();
        let file = folder.path().join("blobs/sha256").join(digest);
        assert!(run_successfully(Command::new("sha256sum").arg(&file)).starts_with(digest));
        serde_json::from_slice::<Value>(&fs::read(file).unwrap()).unwrap()
    };
    let index: Value = serde_json::from_slice(&bytes("index.json")).unwrap();
    let top = &index["manifests"][0];
    assert_eq!(top["annotations"]["io.containerd.image.name"], "docker.io/library/portcullis:1.2.3");
    let platforms = blob(&top["digest"]);
    assert_eq!(platforms["manifests"][1]["platform"]["architecture"], "arm64");
    let config = blob(&blob(&platforms["manifests"][0]["digest"])["config"]["digest"]);
    assert_eq!(config["config"]["User"], "65532:65532");
    let labels = &config["config"]["Labels"];
    for (label, value) in [("source", "https://example.org/portcullis"), ("version", "1.2.3"), ("revision", "abc")] {
        assert_eq!(labels[format!("org.opencontainers.image.{label}")], value);
    }
}
