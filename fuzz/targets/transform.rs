//! Evaluates transforms with the rules of Crossplane, and with the rules of function-patch-and-transform. Repeats each
//! evaluation, and checks that the result or error is the same. The first line of the input is a transform, and each
//! further line is a value, all as JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use portcullis::crossplane::environment::{Profile, Transform};
use portcullis::go::{Any, fmt, regexp};
use serde_json::Value;

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let Ok(transform) = serde_json::from_str::<Transform>(first) else {
        // If the first line is not a transform, it is used as a format and as a regular expression.
        let _ = fmt::sprintf(first, &[Any::text("text"), Any::float(1.5), Any::NilMap]);
        if let Ok(regexp) = regexp::compile(first) {
            let _ = regexp.captures(text);
        }
        return;
    };
    for line in lines {
        let input = serde_json::from_str::<Value>(line).unwrap_or_else(|_| Value::String(line.to_owned()));
        for profile in [Profile::Native117, Profile::Function] {
            let _ = transform.invalid(profile);
            let once = transform.resolve(&Any::Json(input.clone()), profile);
            assert_eq!(format!("{once:?}"), format!("{:?}", transform.resolve(&Any::Json(input.clone()), profile)));
            if let Ok(result) = once {
                // The result of a transform can be the input of the next one.
                let _ = (transform.resolve(&result, profile), result.to_json(), fmt::plain(&result));
            }
        }
    }
});
