//! Adds the arguments of a clap command only when the command is used. A process runs only one of about twenty
//! commands, and adding the arguments of all commands takes longer than checking a folder.

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The arguments of one command, which are added to its clap command only when the command is used. The summary of the
/// command is always present, because `portcullis --help` shows it. The long description in `portcullis COMMAND --help`
/// comes from `T`, the type of the arguments.
#[derive(Debug)]
pub(super) struct Lazy<T>(pub(super) T);

impl<T: FromArgMatches> FromArgMatches for Lazy<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Lazy<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| with_summary(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| with_summary(command, T::augment_args_for_update))
    }
}

/// Calls `define`, which adds the arguments to `command`. Then restores the summary of the command, because `define`
/// may replace it.
fn with_summary(command: Command, define: fn(Command) -> Command) -> Command {
    let about = command.get_about().cloned();
    define(command).about(about.map_or(Resettable::Reset, Resettable::Value))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::cli::Cli;

    /// Collects the descriptions of all commands.
    fn descriptions(command: &clap::Command, all: &mut Vec<(String, String)>) {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            all.push((below.get_name().to_owned(), below.get_about().expect("it has a description").to_string()));
            descriptions(below, all);
        }
    }

    #[test]
    fn commands_keep_their_descriptions() {
        let [mut before, mut after] = [Vec::new(), Vec::new()];
        descriptions(&Cli::command(), &mut before);
        let mut defined = Cli::command();
        defined.build();
        descriptions(&defined, &mut after);
        assert!(before.len() > 12);
        assert_eq!(before, after);
        Cli::command().debug_assert();
    }

    #[test]
    fn help_shows_the_long_description() {
        let mut defined = Cli::command();
        defined.build();
        let mut help = |name: &str| {
            let help = defined.find_subcommand_mut(name).unwrap().render_long_help().to_string();
            help.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        for (name, text) in [("check", "Exit codes: 0"), ("certs", "reuses this CA"), ("verify", "Exit code 1")] {
            assert!(help(name).contains(text), "{}", help(name));
        }
    }
}
