//! Reproduces the steps of Flux's kustomize-controller around a kustomize build.
//!
//! ```text
//! root file ─► read leniently, or generated ─► spec merged in ─► build ─► objects must be unique ─► substitution
//! ```
//!
//! Source: `generate` and `build` in kustomize-controller's `internal/controller/kustomization_controller.go` (1.9.4),
//! `GenerateManifest` and `SubstituteVariables` in fluxcd/pkg's `kustomize` (1.35.4), and fluxcd/pkg's `envsubst`
//! (1.7.0).

mod absent;
mod exclusion;
mod generator;
mod inventory;
mod post_build;
mod substitute;

pub(super) use absent::generate;
pub use exclusion::Excluded;
pub(super) use generator::{Own, complete, merge};
pub(super) use inventory::Compared;
pub(super) use post_build::{Object, evaluated, is_left_alone, post_build};
