//! Reproduces what Flux's kustomize-controller does before and after it builds a folder with kustomize.
//!
//! The steps of kustomize-controller are, in this order:
//!
//! 1. It reads the kustomization file of the folder and ignores unknown fields. If there is no such file, it generates
//!    one.
//! 2. It merges fields of the Flux Kustomization, such as `spec.patches`, into the kustomization file.
//! 3. It builds the folder with kustomize.
//! 4. It checks that each built object has an apiVersion.
//! 5. It substitutes variables in the objects. It fails if two objects then have the same kind, namespace and name.
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
