//! Portcullis: an admission webhook server for composed configuration.
//!
//! One engine with several commands: the webhook server, the controller manager, and commands that apply the same rules
//! to files.
//!
//! | module | content |
//! |---|---|
//! | [`admission`] | the protocol: reviews, requests, verdicts, patches; does not depend on rules |
//! | [`yaml`] | YAML documents as kubectl reads them, with the position of every value |
//! | [`authority`] | self-managed certificates: one CA in a Secret, the caBundles of the webhooks |
//! | [`cache`] | bounded caches: LRU eviction, single flight, recent failures |
//! | [`catalog`] | the objects that rules look up, from a cluster or from files |
//! | [`rule`] | the types of rules and mutators |
//! | [`kustomize`] | kustomize: the build engine, and rules for errors in trees |
//! | [`landscaper`] | Landscaper: overwrites, dry runs, deployers, components |
//! | [`crossplane`] | Crossplane: Compositions and composition environments |
//! | [`go`] | the parts of Go's standard library that results depend on |
//! | [`drawing`] | shared parts of drawings |
//! | `cryptography` | the crypto provider of all TLS connections |
//! | `https` | the HTTP client, and descriptions of its failures |
//! | [`names`] | validation of Kubernetes names |
//! | [`suggestion`] | suggestions ("did you mean"), by edit distance |
//! | [`oci`] | a client for OCI registries; does not depend on components |
//! | [`artifacts`] | fetching, checking and caching of trees outside the request handler |
//! | [`gate`] | selects and runs rules; applies levels and exemptions; derives the registration |
//! | [`audit`] | runs the rules on stored objects; policy reports |
//! | [`config`] | the configuration file |
//! | [`conformance`] | tests of deployers on a cluster |
//! | [`process`] | log, plain HTTP port and signals of long-running commands |
//! | [`recording`] | recorded decisions (`serve --record`) and their replay |
//! | [`reconciler`] | the controller manager, with leader election |
//! | [`remotes`] | fetches git repositories and files for `portcullis build --fetch` |
//! | [`server`] | listener, TLS, certificates, limits, lifecycle, telemetry; does not depend on rules |
//! | [`cli`] | the commands |

pub mod admission;
pub mod artifacts;
pub mod audit;
pub mod authority;
pub mod cache;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod conformance;
pub mod crossplane;
mod cryptography;
pub mod drawing;
pub mod gate;
pub mod go;
mod https;
pub mod kustomize;
pub mod landscaper;
pub mod names;
pub mod oci;
pub mod process;
pub mod reconciler;
pub mod recording;
pub mod remotes;
pub mod rule;
pub mod server;
pub mod suggestion;
pub mod yaml;
