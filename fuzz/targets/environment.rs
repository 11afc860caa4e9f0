//! Computes and explains the environment of a composite. The input is a stream of YAML documents: a Composition, the
//! composite, and EnvironmentConfigs.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use portcullis::catalog::Stored;
use portcullis::crossplane::composition::{declaration, problems};
use portcullis::crossplane::environment::ActionOutcome;
use portcullis::crossplane::explain::Explanation;
use portcullis::yaml;

fuzz_target!(|text: &str| {
    let Ok(documents) = yaml::read(text, &yaml::Limits::default()) else { return };
    let mut objects = documents.into_iter().map(|document| document.value);
    let (Some(composition), Some(composite)) = (objects.next(), objects.next()) else { return };
    let _ = problems(&composition);
    let Some(declaration) = declaration(&composition) else { return };
    let configs: Vec<Arc<Stored>> = objects.map(|object| Arc::new(Stored::new(object))).collect();
    let explanation = Explanation::of(&composite, "fuzzed", declaration, &configs);
    let _ = (explanation.to_text(), explanation.to_json(), explanation.to_svg());
    for step in &explanation.computation().steps {
        let ActionOutcome::Selected { merged: Some(merged), .. } = &step.action else { continue };
        assert_eq!(merged.data.keys().collect::<Vec<_>>(), merged.origins.keys().collect::<Vec<_>>());
        assert!(
            merged.overwrites().iter().all(|found| found.from < found.by),
            "a layer overwrites only earlier layers"
        );
    }
});
