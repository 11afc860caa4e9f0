//! Commands that are defined when they are named: a process runs one of a dozen, and defining them all takes it longer
//! than judging a folder.

use clap::builder::{Resettable, StyledStr};
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// Arguments that are defined when their command is named, whose description is its own and not theirs.
#[derive(Debug)]
pub(super) struct Deferred<T>(pub(super) T);

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| described(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| described(command, T::augment_args_for_update))
    }
}

/// What `define` makes of a command that has a description already.
fn described(command: Command, define: fn(Command) -> Command) -> Command {
    let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
    let kept = |text: Option<StyledStr>| text.map_or(Resettable::Reset, Resettable::Value);
    define(command).about(kept(about)).long_about(kept(long))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::cli::Cli;

    /// What a command is said to be for, there and below, before and after everything is defined.
    fn told(command: &clap::Command, all: &mut Vec<(String, String)>) {
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            all.push((below.get_name().to_owned(), below.get_about().expect("it has a description").to_string()));
            told(below, all);
        }
    }

    #[test]
    fn a_command_has_its_own_description_when_it_is_defined() {
        let [mut before, mut after] = [Vec::new(), Vec::new()];
        told(&Cli::command(), &mut before);
        let mut defined = Cli::command();
        defined.build();
        told(&defined, &mut after);
        assert!(before.len() > 12);
        assert_eq!(before, after);
        Cli::command().debug_assert();
    }
}
