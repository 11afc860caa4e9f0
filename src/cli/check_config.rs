//! `portcullis check-config`: checks whether a server would start with a configuration file and arguments.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Parser as _;

use super::{Cli, DENIED, OK, Unusable, print, say};
use crate::config::{self, ConfigError};
use crate::gate::Registry;

/// Maximum size of a configuration file, in bytes. The limit is above 1.5 MiB, the maximum size of an object in etcd.
const MAX_FILE_BYTES: u64 = 2 << 20;

/// Check a configuration file before a server reads it.
///
/// Writes a line for each problem to standard error: FILE:LINE:COLUMN, what is wrong, and what to write instead.
/// Exit codes: 0 the file is valid; 1 it has problems; 2 it cannot be read.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The configuration file; `-` for standard input
    #[arg(env = "PORTCULLIS_CONFIG", default_value = "/etc/portcullis/config/portcullis.yaml")]
    file: PathBuf,
    /// A command line to check without running it, such as `serve --families=KZ`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<u8, Unusable> {
    let code = file(&args.file)?;
    Ok(if args.command.is_empty() { code } else { code.max(command(&args.command)) })
}

/// Checks a configuration file, prints the result, and returns the exit code.
pub(super) fn file(path: &Path) -> Result<u8, Unusable> {
    let (text, shown) = text(path)?;
    match config::parse(&text, &shown, &Registry::standard()) {
        Ok(_) => {
            print(&format!("{shown}: valid\n"));
            Ok(OK)
        }
        Err(error @ ConfigError::Invalid { .. }) => {
            say(&format!("{error}\n"));
            Ok(DENIED)
        }
        Err(error) => Err(Unusable::new(error.to_string())),
    }
}

fn text(path: &Path) -> Result<(String, String), Unusable> {
    let shown = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
    let read = || {
        let mut text = String::new();
        let input: Box<dyn std::io::Read> = match path == Path::new("-") {
            true => Box::new(std::io::stdin()),
            false => Box::new(std::fs::File::open(path)?),
        };
        input.take(MAX_FILE_BYTES).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    let text = read().map_err(|error| Unusable::because(&shown, error))?;
    if text.len() as u64 == MAX_FILE_BYTES {
        return Err(Unusable::because(shown, format!("the file has more than {} MiB", MAX_FILE_BYTES >> 20)));
    }
    Ok((text, shown))
}

/// Checks the arguments of a command without running it, and returns the exit code.
fn command(words: &[String]) -> u8 {
    let shown = words.first().map(String::as_str).unwrap_or_default();
    match Cli::try_parse_from(std::iter::once("portcullis").chain(words.iter().map(String::as_str))) {
        Ok(_) => {
            print(&format!("arguments of {shown}: valid\n"));
            OK
        }
        Err(error) => {
            say(&format!("arguments of {shown}: {error}"));
            DENIED
        }
    }
}
