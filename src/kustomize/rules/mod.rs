//! The rules that check kustomize trees. Each rule has its own module.

pub(super) mod kz001;
pub(super) mod kz002;
pub(super) mod kz003;
pub(super) mod kz004;
pub(super) mod kz005;
pub(super) mod kz006;
pub(super) mod kz007;
pub(super) mod kz008;
pub(super) mod kz009;
pub(super) mod kz010;
pub(super) mod kz011;
pub(super) mod kz012;
pub(super) mod kz013;
pub(super) mod kz014;
pub(super) mod kz015;
pub(super) mod kz016;
pub(super) mod kz017;
pub(super) mod kz018;
pub(super) mod kz020;
pub(super) mod kz021;
pub(super) mod kz022;
pub(super) mod kz023;
pub(super) mod kz024;
pub(super) mod kz025;
pub(super) mod kz026;
pub(super) mod kz030;
pub(super) mod kz031;
pub(super) mod kz040;
mod kz050;
pub(super) mod kz060;
pub(super) mod kz061;
pub(super) mod kz062;
pub(super) mod kz063;
pub(super) mod kz064;

use crate::rule::{Rule, RuleInfo};

/// The rules that check the content of kustomize trees, sorted by id.
pub(super) static TREE_RULES: &[&RuleInfo] = &[
    &kz001::RULE,
    &kz002::RULE,
    &kz003::RULE,
    &kz004::RULE,
    &kz005::RULE,
    &kz006::RULE,
    &kz007::RULE,
    &kz008::RULE,
    &kz009::RULE,
    &kz010::RULE,
    &kz011::RULE,
    &kz012::RULE,
    &kz013::RULE,
    &kz014::RULE,
    &kz015::RULE,
    &kz016::RULE,
    &kz017::RULE,
    &kz018::RULE,
    &kz020::RULE,
    &kz021::RULE,
    &kz022::RULE,
    &kz023::RULE,
    &kz024::RULE,
    &kz025::RULE,
    &kz026::RULE,
    &kz030::RULE,
    &kz031::RULE,
    &kz040::RULE,
    &kz060::RULE,
    &kz061::RULE,
    &kz062::RULE,
    &kz063::RULE,
    &kz064::RULE,
];

/// The rules that check only the object in an admission request, without building a folder of kustomization files.
pub(super) static RULES: &[&Rule] = &[&kz050::RULE];
