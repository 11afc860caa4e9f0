//! Identities of Kubernetes objects, and the scope of kinds: namespaced or cluster-scoped.
//!
//! There are two types. `Id` is the identity by which kustomize finds an object during a build, and includes the API
//! version. [`ObjectId`] identifies an object in a cluster, in any API version.

pub(super) mod cluster_scope;
mod gvk;
mod id;
mod object_id;

pub(super) use gvk::{Gvk, split_at_slash};
pub(super) use id::{Id, Scope};
pub use object_id::ObjectId;
pub(super) use object_id::listed;
