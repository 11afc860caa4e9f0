//! Portcullis: admission control for configuration that is composed.
//!
//! One engine with several faces: the webhook server, and commands that apply the same rules to files.
//!
//! | room | what is in it |
//! |---|---|
//! | [`admission`] | the protocol: reviews, requests, verdicts, patches; knows no rule |
//! | [`catalog`] | what rules may look up, from a cluster or from files |
//! | [`rule`] | the shape of a rule and of a mutator |
//! | [`landscaper`] | Landscaper: overwrites |
//! | [`gate`] | which rules see which request; levels, exemptions; what is derived from the registry |

pub mod admission;
pub mod catalog;
pub mod gate;
pub mod landscaper;
pub mod rule;
