//! Portcullis: admission control for configuration that is composed.
//!
//! One engine with several faces: the webhook server, and commands that apply the same rules to files.
//!
//! | room | what is in it |
//! |---|---|
//! | [`admission`] | the protocol: reviews, requests, verdicts, patches; knows no rule |
//! | [`yaml`] | documents as kubectl reads them, with the place of everything |
//! | [`authority`] | certificates that replicas keep themselves: one CA in a Secret, the caBundles of our webhooks |
//! | [`catalog`] | what rules may look up, from a cluster or from files |
//! | [`rule`] | the shape of a rule and of a mutator |
//! | [`kustomize`] | kustomize trees: everything that `kustomize build` refuses, found without building |
//! | [`landscaper`] | Landscaper: overwrites |
//! | [`crossplane`] | Crossplane: composition environments |
//! | [`drawing`] | what drawings have in common |
//! | `cryptography` | ring, behind every TLS |
//! | `https` | HTTP and TLS as a client: what is trusted, and why it failed |
//! | [`names`] | names as Kubernetes has them: of labels, their values, and objects |
//! | [`near`] | "did you mean": the nearest of some names |
//! | [`oci`] | reading from OCI registries, within bounds; knows no component |
//! | [`artifacts`] | trees that are fetched, judged and kept beside the handler |
//! | [`gate`] | which rules see which request; levels, exemptions; what is derived from the registry |
//! | [`audit`] | what is stored, judged by the same rules; policy reports |
//! | [`config`] | the configuration file |
//! | [`conformance`] | trials of deployers on a cluster |
//! | [`process`] | log, plain port, signals: what every long-running face has |
//! | [`recording`] | what `serve --record` writes down, and how it is decided again |
//! | [`reconciler`] | the companion: what acts after admission, in the replica that leads |
//! | [`server`] | listener, TLS, certificates, limits, lifecycle, telemetry; knows no rule |
//! | [`cli`] | the commands |

pub mod admission;
pub mod artifacts;
pub mod audit;
pub mod authority;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod conformance;
pub mod crossplane;
mod cryptography;
pub mod drawing;
pub mod gate;
mod https;
pub mod kustomize;
pub mod landscaper;
pub mod names;
pub mod near;
pub mod oci;
pub mod process;
pub mod reconciler;
pub mod recording;
pub mod rule;
pub mod server;
pub mod yaml;
