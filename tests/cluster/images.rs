//! Imports the images of the node from files. The node pulls no image from a registry.

use std::io;
use std::path::Path;
use std::process::{Command, Output};

use crate::node::Node;

/// The name of Portcullis' image in docs/install.md.
pub const REPOSITORY: &str = "registry.example/portcullis";
/// The tag to which the scenarios upgrade. This tag and the tag of the current version name the same image.
pub const NEXT: &str = "next";
const WRITER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/packages/image.py");
const PLATFORM: &str = if cfg!(target_arch = "aarch64") { "linux/arm64" } else { "linux/amd64" };

/// Imports the image of Portcullis from `archive`, and adds the tags that the scenarios use. Also imports the `pause`
/// image, which contains the first process of every pod.
pub fn import(node: &Node, archive: &Path) -> io::Result<()> {
    let pause = node.folder().join("pause.tar");
    let mut command = Command::new("python3");
    command.arg(WRITER).arg("--out").arg(&pause).args(["--name", "pause:1", "--version", "1", "--revision", "none"]);
    command.args(["--source", "none"]).arg(format!("{PLATFORM}={}", node.program("pause").display()));
    run(&mut command)?;
    run(node.ctr().args(["images", "import"]).arg(&pause))?;
    run(node.ctr().args(["images", "import"]).arg(archive))?;
    let version = env!("CARGO_PKG_VERSION");
    for tag in [version, NEXT] {
        let (from, to) = (format!("docker.io/library/portcullis:{version}"), format!("{REPOSITORY}:{tag}"));
        run(node.ctr().args(["images", "tag", &from, &to]))?;
    }
    Ok(())
}

fn run(command: &mut Command) -> io::Result<Output> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(output);
    }
    Err(io::Error::other(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr))))
}
