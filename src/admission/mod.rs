//! The admission protocol: what the API server sends, and what it accepts as an answer.
//!
//! This room knows no rule and imports nothing of ours. A request's way through it:
//!
//! ```text
//! bytes → review::read → Review { Request } → (the gate) → Verdict → Answer → bytes
//! ```
//!
//! The contract that it keeps (uid always echoed, decisions always as HTTP 200, `patchType` if and only if there is a
//! patch, capped warnings) is the API server's own verification of an answer, `VerifyAdmissionResponse` in
//! `k8s.io/apiserver/pkg/admission/plugin/webhook/request`.

mod brackets;
pub mod field;
pub mod finding;
pub mod json;
pub mod kept;
mod lean;
pub mod patch;
pub mod request;
pub mod review;
pub(crate) mod scan;
pub mod verdict;

pub use field::{FieldPath, Segment};
pub use finding::{Finding, Level};
pub use kept::Kept;
pub use lean::Path;
pub use request::{COLLECTORS, Object, Operation, Request, Resource, User};
pub use review::{Answer, Review, Unreadable, Version};
pub use verdict::{Outcome, Phase, Refusal, Verdict};
