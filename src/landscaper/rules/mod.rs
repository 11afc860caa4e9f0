//! The rules for objects of Landscaper, one file each. The code that several rules share is in the other modules of
//! `landscaper`.

mod dp001;
mod dp002;
mod dp003;
mod dp004;
mod dp005;
mod dp006;
mod dp007;
mod dp008;
mod dp009;
mod dp010;
mod dp011;
mod dp012;
mod dp013;
mod dp014;
mod dr001;
mod dr002;
mod dr003;
mod dr004;
mod dr005;
mod dr006;
mod dr007;
mod dr008;
mod dr009;
mod dr010;
mod dr011;
mod dr012;
mod ls001;
mod ls002;
mod ls003;
mod ls004;
mod ls005;
mod ls006;
mod ls007;
mod ls008;
mod ls009;
mod ls010;
mod ls011;
mod ow001;
mod ow002;
mod ow003;
mod ow004;
mod ow005;
mod ow006;
mod ow007;
mod ow008;
mod ow009;
mod ow010;
mod ow011;

use super::kinds::{DELETION, UPDATE, WRITES};
use crate::rule::Rule;

/// All rules for objects of Landscaper, in the order of their ids.
pub(super) static RULES: &[&Rule] = &[
    &dp001::RULE,
    &dp002::RULE,
    &dp003::RULE,
    &dp004::RULE,
    &dp005::RULE,
    &dp006::RULE,
    &dp007::RULE,
    &dp008::RULE,
    &dp009::RULE,
    &dp010::RULE,
    &dp011::RULE,
    &dp012::RULE,
    &dp013::RULE,
    &dp014::RULE,
    &dr001::RULE,
    &dr002::RULE,
    &dr003::RULE,
    &dr004::RULE,
    &dr005::RULE,
    &dr006::RULE,
    &dr007::RULE,
    &dr008::RULE,
    &dr009::RULE,
    &dr010::RULE,
    &dr011::RULE,
    &dr012::RULE,
    &ls001::RULE,
    &ls002::RULE,
    &ls003::RULE,
    &ls004::RULE,
    &ls005::RULE,
    &ls006::RULE,
    &ls007::RULE,
    &ls008::RULE,
    &ls009::RULE,
    &ls010::RULE,
    &ls011::RULE,
    &ow001::RULE,
    &ow002::RULE,
    &ow003::RULE,
    &ow004::RULE,
    &ow005::RULE,
    &ow006::RULE,
    &ow007::RULE,
    &ow008::RULE,
    &ow009::RULE,
    &ow010::RULE,
    &ow011::RULE,
];
