//! Fuzz target: the body of a webhook call. If the body has a uid, the response must be one that the API server
//! accepts.
#![no_main]

#[allow(dead_code, unreachable_pub)]
#[path = "../../tests/cases/verify.rs"]
mod verify;

use std::sync::{Arc, LazyLock};

use futures::executor::block_on;
use libfuzzer_sys::fuzz_target;
use portcullis::admission::Phase;
use portcullis::admission::review::{self, Review};
use portcullis::catalog::Catalog;
use portcullis::gate::{Gate, Policy, Registry};
use serde_json::Value;

static GATE: LazyLock<Gate> = LazyLock::new(|| {
    let registry = Registry::standard();
    let catalog = Catalog::of(registry.kinds(), Vec::new());
    Gate::new(registry, Policy::default(), Arc::new(catalog))
});

fn answer(phase: Phase, body: &[u8]) -> Option<Vec<u8>> {
    match review::read(body) {
        Ok(Review { version, request }) => {
            Some(block_on(GATE.decide(phase, &request)).answer(version, phase, &request).to_json())
        }
        Err(unreadable) => unreadable.answer().map(|answer| answer.to_json()),
    }
}

/// Returns the uid of the review in a request body, read with `serde_json`. If there is a uid, the fuzz target expects
/// a valid response. `None` if the body has no readable uid, or if the review has the version `v1beta1`.
fn uid(body: &[u8]) -> Option<String> {
    let review: Value = serde_json::from_slice(body).ok()?;
    (review["apiVersion"] != "admission.k8s.io/v1beta1").then_some(())?;
    review["request"]["uid"].as_str().filter(|uid| !uid.is_empty()).map(str::to_owned)
}

fuzz_target!(|body: &[u8]| {
    let uid = uid(body);
    for phase in [Phase::Mutate, Phase::Validate] {
        let answer = answer(phase, body);
        if let Some(uid) = &uid {
            let answer = answer.unwrap_or_else(|| panic!("a readable uid got no answer"));
            verify::verify(&answer, uid, phase).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
});
