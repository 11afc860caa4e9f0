//! Portcullis: a Kubernetes admission webhook server that checks composed configuration, such as kustomize trees,
//! Landscaper Installations and Crossplane Compositions.
//!
//! The same rules run in several commands: in the webhook server, in the controller manager, and in commands that check
//! files.
//!
//! | module | content |
//! |---|---|
//! | [`admission`] | the admission protocol: reviews, requests, verdicts and patches; does not depend on rules |
//! | [`yaml`] | YAML documents, parsed as kubectl does, with the position of every value |
//! | [`authority`] | self-managed certificates: one CA in a Secret, and the caBundles of the webhooks |
//! | [`cache`] | bounded caches with LRU eviction, single flight, and caching of recent failures |
//! | [`catalog`] | the objects that rules look up, from a cluster or from files |
//! | [`rule`] | the types with which the other modules define rules and mutators |
//! | [`kustomize`] | kustomize: a build engine, and rules about errors in kustomize trees |
//! | [`landscaper`] | Landscaper: overwrites, dry runs, deployers and components, and rules about them |
//! | [`crossplane`] | Crossplane: Compositions and composition environments, and rules about them |
//! | [`go`] | functions of Go and of `k8s.io/apimachinery`, reimplemented with the same results |
//! | [`drawing`] | colors and text escaping for diagrams |
//! | `cryptography` | the crypto provider of all TLS connections |
//! | `https` | the HTTP client, and descriptions of its failures |
//! | [`names`] | validation of Kubernetes names |
//! | [`suggestion`] | suggestions of similar names ("did you mean"), by edit distance |
//! | [`oci`] | a client for OCI registries; does not depend on Landscaper's components |
//! | [`artifacts`] | fetches, checks and caches kustomize trees, outside of request handlers |
//! | [`gate`] | selects and runs the rules for a request, and generates the webhook configurations |
//! | [`audit`] | runs the rules on stored objects, and writes policy reports |
//! | [`config`] | the configuration file |
//! | [`conformance`] | tests of Landscaper deployers on a cluster |
//! | [`process`] | the log, the plain HTTP port and the signal handling of long-running commands |
//! | [`recording`] | recordings of admission decisions (`serve --record`), and their replay |
//! | [`reconciler`] | the controller manager, with leader election |
//! | [`remotes`] | fetches git repositories and files for `portcullis build --fetch` |
//! | [`server`] | the webhook server: TLS, certificates, limits, lifecycle and telemetry; does not depend on rules |
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
