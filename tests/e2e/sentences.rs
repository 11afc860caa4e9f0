//! Assertions about applied objects: the API server accepts or denies an object, warns about it, or changes it.
//!
//! Each assertion runs `kubectl apply -f -`, as a user would. If an assertion fails, its message contains the output of
//! kubectl.

use std::panic::{Location, resume_unwind};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use crate::context::Context;
use crate::daemon::PAUSE;
use crate::deadline::deadline;
use crate::gate::Gate;
use crate::kubectl::Output;

/// Asserts that applying `yaml` fails, and that the error output contains all texts in `expected`.
#[track_caller]
pub fn rejects(ctx: &Context, namespace: &str, yaml: &str, expected: &[&str]) {
    let output = apply(ctx, namespace, yaml, &[]);
    if output.status.success() {
        fail(ctx, yaml, &output, "must be rejected");
    }
    require_words(ctx, yaml, &output, &output.stderr, expected);
}

/// Asserts that applying `yaml` succeeds without a warning.
#[track_caller]
pub fn accepts(ctx: &Context, namespace: &str, yaml: &str) {
    let output = apply_successfully(ctx, namespace, yaml, &[]);
    if output.stderr.contains("Warning:") {
        fail(ctx, yaml, &output, "must be accepted without a warning");
    }
}

/// Asserts that applying `yaml` succeeds with warnings, and that the output contains all texts in `expected`.
#[track_caller]
pub fn warns(ctx: &Context, namespace: &str, yaml: &str, expected: &[&str]) {
    let output = apply_successfully(ctx, namespace, yaml, &[]);
    if !output.stderr.contains("Warning:") {
        fail(ctx, yaml, &output, "must cause a warning");
    }
    require_words(ctx, yaml, &output, &output.stderr, expected);
}

/// Asserts that applying the object `yaml` succeeds, and that the stored object has all values in `expected`. Each
/// entry of `expected` contains a JSON pointer and the value at this pointer. The value null means that the field is
/// absent.
#[track_caller]
pub fn patches(ctx: &Context, namespace: &str, yaml: &str, expected: &[(&str, Value)]) {
    let output = apply_successfully(ctx, namespace, yaml, &["-o", "json"]);
    let stored: Value = serde_json::from_str(&output.stdout).expect("kubectl writes JSON when asked to");
    for (pointer, value) in expected {
        let found = stored.pointer(pointer).unwrap_or(&Value::Null);
        if found != value {
            fail(ctx, yaml, &output, &format!("must have {value} at {pointer}, but has {found}"));
        }
    }
}

#[track_caller]
fn apply_successfully(ctx: &Context, namespace: &str, yaml: &str, args: &[&str]) -> Output {
    let output = apply(ctx, namespace, yaml, args);
    if !output.status.success() {
        fail(ctx, yaml, &output, "must be accepted");
    }
    output
}

fn apply(ctx: &Context, namespace: &str, yaml: &str, args: &[&str]) -> Output {
    let apply = ["apply", "--namespace", namespace, "-f", "-"];
    ctx.cluster.kubectl().args(apply).args(args).stdin(yaml).run()
}

#[track_caller]
fn require_words(ctx: &Context, yaml: &str, output: &Output, words: &str, expected: &[&str]) {
    if let Some(missing) = expected.iter().find(|part| !words.contains(**part)) {
        fail(ctx, yaml, output, &format!("must be answered with {missing:?}"));
    }
}

/// Fails the test with a message that contains the object, kubectl's output, and the end of portcullis' log. Does not
/// call the panic hook, which would print the message a second time.
#[track_caller]
fn fail(ctx: &Context, yaml: &str, output: &Output, requirement: &str) -> ! {
    let location = Location::caller();
    let log = ctx.gate.as_ref().map(Gate::log_end).unwrap_or_default();
    let text = format!("{location}: this object {requirement}:\n{yaml}\n{output}\n--- portcullis\n{log}");
    resume_unwind(Box::new(text))
}

/// Calls `attempt` repeatedly until it returns a value, and returns this value. Panics if there is no value before the
/// deadline. Retries are needed because the catalog follows the API server with a delay.
#[track_caller]
pub fn eventually<T>(attempt: impl Fn() -> Option<T>) -> T {
    eventually_or_show(|| attempt().ok_or_else(String::new))
}

/// Calls `attempt` repeatedly until it succeeds, and returns its value. Panics with the last error of `attempt` if it
/// does not succeed before the deadline.
#[track_caller]
pub fn eventually_or_show<T>(attempt: impl Fn() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match attempt() {
            Ok(found) => return found,
            Err(why) if start.elapsed() > deadline() => {
                panic!("{}: no success within {:?}\n{why}", Location::caller(), deadline())
            }
            Err(_) => thread::sleep(PAUSE),
        }
    }
}
