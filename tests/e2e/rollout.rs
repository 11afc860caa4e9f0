//! Tests of shadow mode, and of an exemption that expires.
//!
//! Each test starts a second portcullis. The webhooks of the second portcullis match only labeled objects in the
//! namespace `portcullis-system`. The webhooks of the first portcullis exclude this namespace.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::Case;
use crate::context::Context;
use crate::daemon::{Daemon, DaemonError, on_free_ports};
use crate::deadline::deadline;
use crate::http;
use crate::kubectl::Output;
use crate::sentences::eventually;
use crate::user::User;

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("rollout::shadow_mode_admits_and_logs_what_it_would_deny", shadow_mode_admits_and_logs_what_it_would_deny),
    ("rollout::an_exemption_expires_at_its_time", an_exemption_expires_at_its_time),
];

const BINARY: &str = env!("CARGO_BIN_EXE_portcullis");
const NAMESPACE: &str = "portcullis-system";

/// A second portcullis, which validates only objects whose label `case` has the value `name`. When the `SecondServer`
/// is dropped, its webhook configuration is deleted, and then the process is killed.
struct SecondServer<'c> {
    ctx: &'c Context,
    name: &'static str,
    daemon: Option<Daemon>,
    admin_port: u16,
    folder: PathBuf,
}

impl<'c> SecondServer<'c> {
    fn start(ctx: &'c Context, name: &'static str, arguments: &[String]) -> Self {
        let is_port_taken = |error: &DaemonError| error.port_was_taken();
        let folder = ctx.cluster.folder().join(name);
        fs::create_dir_all(folder.join("certs")).expect("the folder can be created");
        run(Command::new(BINARY).args(["certs", "--host", "127.0.0.1", "--out"]).arg(folder.join("certs")));
        let serve = |[port, admin_port]: [u16; 2]| {
            let mut command = Command::new(BINARY);
            command.arg("serve").arg("--certs").arg(folder.join("certs")).args(arguments);
            command.args([
                "--listen",
                &format!("127.0.0.1:{port}"),
                "--admin-listen",
                &format!("127.0.0.1:{admin_port}"),
            ]);
            command.arg("--kubeconfig").arg(ctx.cluster.kubeconfig(User::Portcullis));
            let daemon = Daemon::start("a second portcullis", &mut command, &folder.join("log"))?;
            daemon.wait_until(deadline(), || http::is_ok(&http::get(admin_port, "/readyz")))?;
            Ok((daemon, [port, admin_port]))
        };
        let (daemon, [port, admin_port]) = on_free_ports(serve, is_port_taken).expect("portcullis starts");
        let second = Self { ctx, name, daemon: Some(daemon), admin_port, folder };
        second.register(port);
        second
    }

    fn register(&self, port: u16) {
        let manifests = self.folder.join("manifests");
        let url = format!("https://127.0.0.1:{port}");
        let mut command = Command::new(BINARY);
        command.args(["manifests", "--url", &url, "--out"]).arg(&manifests);
        run(command.arg("--ca-bundle").arg(self.folder.join("certs/ca.crt")));
        let text = fs::read_to_string(manifests.join("validating.yaml")).expect("the file can be read");
        let text = text.replace("  name: portcullis\n", &format!("  name: {}\n", self.name));
        let text = text
            .replace("operator: NotIn", "operator: In")
            .replace("[kube-system, portcullis-system]", "[portcullis-system]");
        let selector =
            format!("    objectSelector: {{matchLabels: {{case: {}}}}}\n    namespaceSelector:\n", self.name);
        let text = text.replace("    namespaceSelector:\n", &selector);
        self.ctx.cluster.kubectl().args(["apply", "--server-side", "-f", "-"]).stdin(text).run().expect_success();
    }

    /// Sends a create request with `--dry-run=server` for an object that violates rule OW001. Returns the output of
    /// kubectl, which shows whether a webhook denied the request.
    fn create(&self) -> Output {
        let yaml = format!(
            "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: ComponentVersionOverwrites\nmetadata: {{name: {0}, \
             labels: {{case: {0}}}}}\noverwrites: [{{source: {{}}, substitution: {{repositoryContext: none}}}}]\n",
            self.name
        );
        let create = ["create", "--dry-run=server", "--namespace", NAMESPACE, "-f", "-"];
        self.ctx.cluster.kubectl().args(create).stdin(yaml).run()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    fn admin(&self, path: &str) -> String {
        http::get(self.admin_port, path).expect("portcullis answers")
    }
}

impl Drop for SecondServer<'_> {
    fn drop(&mut self) {
        let delete = ["delete", "validatingwebhookconfiguration", self.name, "--ignore-not-found"];
        self.ctx.cluster.kubectl().args(delete).run();
        drop(self.daemon.take());
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("portcullis runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn is_denied(output: &Output) -> bool {
    !output.status.success() && output.stderr.contains("denied the request") && output.stderr.contains("OW001")
}

fn shadow_mode_admits_and_logs_what_it_would_deny(ctx: &Context) {
    let shadow = SecondServer::start(ctx, "shadow", &["--shadow".to_owned()]);
    // The API server calls a new webhook only after a delay. Until then, the log contains no finding.
    let is_shadow_denial = |line: &str| {
        line.contains("name=\"shadow\"") && line.contains("shadow=\"deny\"") && line.contains("OW001=deny")
    };
    eventually(|| {
        let output = shadow.create().expect_success();
        assert!(!output.stderr.contains("Warning:"), "shadow mode must not warn: {output}");
        shadow.log().lines().any(is_shadow_denial).then_some(())
    });
    let readyz = shadow.admin("/readyz");
    assert!(readyz.contains("200 OK") && readyz.contains("[+] enforcement ok, but off"), "{readyz}");
    assert!(shadow.admin("/metrics").contains("portcullis_shadow 1"));
}

fn an_exemption_expires_at_its_time(ctx: &Context) {
    let config = ctx.cluster.folder().join("exemption.yaml");
    fs::write(&config, "# none yet\n").expect("the file can be written");
    let second = SecondServer::start(ctx, "exemption", &["--config".to_owned(), config.display().to_string()]);
    eventually(|| is_denied(&second.create()).then_some(()));
    let exempt = |seconds| {
        let until = OffsetDateTime::now_utc() + Duration::from_secs(seconds);
        let until = until.format(&Rfc3339).expect("the time can be formatted");
        let exemption = format!("exemptions:\n  - {{rule: OW001, namespaces: [{NAMESPACE}], until: '{until}'}}\n");
        fs::write(&config, exemption).expect("the file can be written");
    };
    exempt(3600);
    eventually(|| second.create().status.success().then_some(()));
    exempt(2);
    eventually(|| is_denied(&second.create()).then_some(()));
    let reported = || second.log().contains("an exemption has expired").then_some(());
    eventually(reported);
}
