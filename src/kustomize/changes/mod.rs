//! Compares the objects that kustomize renders before and after a change of files.
//!
//! A root is a folder that is built on its own. The module builds each root that the change can affect, once before and
//! once after the change. It reports the objects that are created, changed, replaced, moved to another root, deleted,
//! or orphaned. An orphaned object stays in the cluster, although no root renders it any more.
//!
//! ```
//! use portcullis::kustomize::changes::{Action, Side, plan};
//! use portcullis::kustomize::options::Options;
//! use portcullis::kustomize::tree::{Memory, Tree};
//!
//! let map = |value: &str| format!("kind: ConfigMap\napiVersion: v1\nmetadata: {{name: a}}\ndata: {{key: {value}}}\n");
//! let side = |value: &str| {
//!     let files = Memory::new().file("app/kustomization.yaml", "resources: [a.yaml]\n").file("app/a.yaml", map(value));
//!     Side::new(Tree::new(files, "/"), &Options::default())
//! };
//! let plan = plan(&side("old"), &side("new"), None);
//! let change = &plan.roots[0].objects[0];
//! assert_eq!(change.action, Action::Change);
//! assert_eq!(change.fields[0].path, "data.key");
//! assert_eq!(plan.counts().to_string(), "0 to create, 1 to change, 0 to replace, 0 to delete, 0 moved, 0 unchanged");
//! ```

mod compare;
mod fields;
mod object;
mod plan;
mod reach;
mod secret;
mod side;

pub use compare::{Action, ObjectChange};
pub use fields::{FieldChange, Located};
pub use object::Object;
pub use plan::{Cause, Counts, Owner, Pair, Plan, RootChange, State, plan, reached, root_change};
pub use reach::changed_files;
pub use side::Side;
