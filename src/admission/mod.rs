//! The admission protocol: what the API server sends, and which responses it accepts.
//!
//! This module does not depend on any rule. The path of a request:
//!
//! ```text
//! bytes → review::read → Review { Request } → (the gate runs the rules) → Verdict → Answer → bytes
//! ```
//!
//! The responses satisfy the checks of the API server, `VerifyAdmissionResponse` in
//! `k8s.io/apiserver/pkg/admission/plugin/webhook/request`: the uid is echoed, every decision has the HTTP status 200,
//! `patchType` is set if and only if there is a patch, and the number of warnings is limited.

mod answer;
mod brackets;
mod checked;
mod decide;
pub mod field;
pub mod finding;
pub mod json;
mod metadata;
pub mod patch;
mod projection;
pub mod request;
pub mod review;
pub(crate) mod scan;
pub mod typed_view;
pub mod verdict;

pub use answer::Answer;
pub use decide::Decide;
pub use field::{FieldPath, Segment};
pub use finding::{Finding, Level, Position};
pub use metadata::Metadata;
pub use projection::Path;
pub use request::{COLLECTORS, Object, Operation, Request, Resource, User};
pub use review::{Review, Unreadable, Version};
pub use typed_view::TypedView;
pub use verdict::{Outcome, Phase, Refusal, Verdict};
