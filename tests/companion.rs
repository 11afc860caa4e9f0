//! The companion without a cluster: what is derived from its controllers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "in a test a panic is the report")]

use std::path::Path;

use portcullis::gate::Registry;
use portcullis::gate::registration::Choice;
use portcullis::reconciler::registration::Registration;
use portcullis::reconciler::{Settings, controllers};

#[test]
fn the_committed_rights_are_the_ones_that_would_be_written() {
    let all = Choice::These(Registry::standard().families());
    for (folder, namespace, name, families) in [
        ("webhook-config", "portcullis-system", "portcullis", all),
        ("charts/portcullis/templates", "{{ .Release.Namespace }}", "{{ .Release.Name }}", Choice::Values),
    ] {
        let service_account = format!("{name}-companion");
        let registration = Registration { namespace: namespace.to_owned(), service_account, families };
        for (file, text) in registration.manifests(&controllers(&Settings::default())) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(file);
            let committed = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(committed == text, "{} is out of date: run `make generate`", path.display());
        }
    }
}
