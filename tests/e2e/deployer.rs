//! Tests the rules of the deployer contract, which says how deployers process DeployItems. The tests write DeployItems
//! and their status subresource to an API server. Portcullis must admit all writes that Landscaper and its deployers
//! make, and must deny or warn about writes that break a requirement of the contract.

use serde_json::{Value, json};

use crate::Case;
use crate::context::Context;
use crate::kubectl::Output;
use crate::sentences::{accepts, rejects, warns};

/// The tests of this file.
pub const CASES: &[Case] = &[
    ("deployer::writes_of_a_run_are_admitted", writes_of_a_run_are_admitted),
    ("deployer::an_unchanged_item_may_finish_without_other_phases", an_unchanged_item_may_finish_without_other_phases),
    (
        "deployer::a_job_may_fail_before_the_pickup_if_the_target_is_missing",
        a_job_may_fail_before_the_pickup_if_the_target_is_missing,
    ),
    ("deployer::landscaper_may_fail_jobs_after_a_timeout", landscaper_may_fail_jobs_after_a_timeout),
    ("deployer::an_interrupt_may_fail_any_job", an_interrupt_may_fail_any_job),
    ("deployer::a_test_reconcile_may_set_its_own_job", a_test_reconcile_may_set_its_own_job),
    ("deployer::phase_and_finished_job_may_be_written_separately", phase_and_finished_job_may_be_written_separately),
    ("deployer::writes_of_a_deletion_are_admitted", writes_of_a_deletion_are_admitted),
    ("deployer::writes_of_older_deployers_are_admitted", writes_of_older_deployers_are_admitted),
    ("deployer::denies_finished_jobs_without_a_final_phase", denies_finished_jobs_without_a_final_phase),
    ("deployer::denies_finishing_another_job", denies_finishing_another_job),
    ("deployer::denies_changes_of_a_result", denies_changes_of_a_result),
    ("deployer::denies_starting_without_a_pickup", denies_starting_without_a_pickup),
    ("deployer::denies_uninstalling_items_that_are_not_deleted", denies_uninstalling_items_that_are_not_deleted),
    ("deployer::warns_about_unknown_phases", warns_about_unknown_phases),
    ("deployer::warns_about_replaced_jobs", warns_about_replaced_jobs),
    ("deployer::denies_violations_during_deletion", denies_violations_during_deletion),
    ("deployer::denies_changes_of_the_type", denies_changes_of_the_type),
    ("deployer::annotations_must_match_the_spec", annotations_must_match_the_spec),
    ("deployer::denies_removal_of_the_finalizer_before_deletion", denies_removal_of_the_finalizer_before_deletion),
    ("deployer::denies_writes_to_items_of_other_types", denies_writes_to_items_of_other_types),
    ("deployer::denies_writes_to_items_of_other_targets", denies_writes_to_items_of_other_targets),
    ("deployer::warns_about_a_type_without_a_deployer", warns_about_a_type_without_a_deployer),
    (
        "deployer::denies_configurations_that_the_deployer_cannot_read",
        denies_configurations_that_the_deployer_cannot_read,
    ),
    ("deployer::denies_invalid_values_of_delete_without_uninstall", denies_invalid_values_of_delete_without_uninstall),
    ("deployer::only_restorers_may_restore_statuses", only_restorers_may_restore_statuses),
];

const MANIFEST: &str = "landscaper.gardener.cloud/kubernetes-manifest";
const T1: &str = "2026-01-01T12:00:00Z";
const T2: &str = "2026-01-01T12:01:00Z";

/// A DeployItem in a test. `generation` says whether an old or a new version of the deployer writes its status.
struct Item<'c> {
    ctx: &'c Context,
    ns: String,
    name: &'static str,
    generation: Generation,
}

/// A generation of deployers: before or since Landscaper 0.52. The two generations write different fields of the
/// status.
#[derive(Clone, Copy, PartialEq)]
enum Generation {
    /// The deployers since Landscaper 0.52, which write `phase`.
    Newer,
    /// The deployers before Landscaper 0.52, which write `phase` and `deployItemPhase`.
    Older,
}

const GENERATIONS: [Generation; 2] = [Generation::Newer, Generation::Older];

impl Generation {
    /// Returns `status` in the form in which this generation of deployers writes it. `status` has the form of the newer
    /// generation. The older generation does not use the phases `InitDelete` and `DeleteFailed`. It also writes the
    /// field `deployItemPhase`.
    fn convert(self, mut status: Value) -> Value {
        let phase = status["phase"].as_str().map(str::to_owned);
        let (Self::Older, Some(phase)) = (self, phase) else { return status };
        let (inner, outer) = match phase.as_str() {
            "Init" => ("Init", "Progressing"),
            "InitDelete" => ("Init", "Deleting"),
            "DeleteFailed" => ("Failed", "Failed"),
            same => (same, same),
        };
        status["phase"] = json!(inner);
        status["deployItemPhase"] = json!(outer);
        status
    }
}

fn yaml(name: &str, type_name: &str, spec: &str) -> String {
    format!(
        "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: DeployItem\nmetadata: {{name: {name}, finalizers: \
         [finalizer.landscaper.gardener.cloud]}}\nspec:\n  type: {type_name}\n  config: {{apiVersion: \
         manifest.deployer.landscaper.gardener.cloud/v1alpha2, kind: ProviderConfiguration}}\n{spec}"
    )
}

/// Creates an object, and checks that no DP rule warns. Other warnings are allowed, because the API server itself warns
/// about the name of Landscaper's finalizer.
#[track_caller]
fn create(ctx: &Context, ns: &str, yaml: &str) {
    let output =
        ctx.cluster.kubectl().args(["create", "--namespace", ns, "-f", "-"]).stdin(yaml).run().expect_success();
    assert!(!output.stderr.contains("Warning: DP"), "{output}");
}

impl<'c> Item<'c> {
    fn new(ctx: &'c Context) -> Self {
        Self::with_generation(ctx, Generation::Newer)
    }

    fn with_generation(ctx: &'c Context, generation: Generation) -> Self {
        let ns = ctx.cluster.namespace("deployer");
        create(ctx, &ns, &yaml("item", MANIFEST, ""));
        Self { ctx, ns, name: "item", generation }
    }

    fn write_as(&self, user: &str, status: Value) -> Output {
        let mut patch = json!({"status": self.generation.convert(status)});
        patch["status"]["observedGeneration"] = json!(1);
        let patch = patch.to_string();
        let impersonation = if user == "admin" { vec![] } else { vec!["--as", user, "--as-group", "system:masters"] };
        let args = ["patch", "deployitem", self.name, "--namespace", &self.ns, "--subresource=status", "--type=merge"];
        self.ctx.cluster.kubectl().args(args).args(["-p", &patch]).args(impersonation).run()
    }

    #[track_caller]
    fn write(&self, status: Value) -> &Self {
        let output = self.write_as("admin", status).expect_success();
        assert!(!output.stderr.contains("Warning: DP"), "the write must be admitted without a warning:\n{output}");
        self
    }

    #[track_caller]
    fn assert_denied(&self, status: Value, expected: &[&str]) -> &Self {
        assert_denied(&self.write_as("admin", status), expected);
        self
    }

    #[track_caller]
    fn assert_warned(&self, status: Value, expected: &[&str]) -> &Self {
        let output = self.write_as("admin", status).expect_success();
        for words in expected {
            assert!(
                output.stderr.contains("Warning:") && output.stderr.contains(words),
                "{words:?} is missing:\n{output}"
            );
        }
        self
    }

    fn trigger(&self, job: &str) -> &Self {
        let times = json!({"triggerTime": T1});
        self.write(json!({"jobID": job, "jobIDGenerationTime": T1, "transitionTimes": times}))
    }

    fn pick_up(&self) -> &Self {
        let deployer = json!({"identity": "manifest-1", "name": "manifest", "version": "v1"});
        self.write(json!({"phase": "Init", "lastReconcileTime": T1, "deployer": deployer, "lastError": null}))
    }

    fn finish(&self, phase: &str, job: &str) -> &Self {
        self.write(json!({"phase": phase, "jobIDFinished": job}))
    }

    fn with_picked_up_job(ctx: &'c Context) -> Self {
        Self::new(ctx).pick_up_job_b()
    }

    fn with_succeeded_job(ctx: &'c Context) -> Self {
        Self::with_picked_up_job(ctx).finish_job_b()
    }

    /// Starts job `b` of the DeployItem: writes the status as Landscaper does when it requests the job, and then as a
    /// deployer does when it picks the job up.
    fn pick_up_job_b(self) -> Self {
        self.trigger("b").pick_up();
        self
    }

    /// Writes the status of a DeployItem whose job `b` has succeeded.
    fn finish_job_b(self) -> Self {
        self.finish("Succeeded", "b");
        self
    }

    fn delete(&self) -> &Self {
        let args = ["delete", "deployitem", self.name, "--namespace", &self.ns, "--wait=false"];
        self.ctx.cluster.kubectl().args(args).run().expect_success();
        self
    }

    fn patch(&self, patch: &str, more: &[&str]) -> Output {
        let args = ["patch", "deployitem", self.name, "--namespace", &self.ns, "--type=merge", "-p", patch];
        self.ctx.cluster.kubectl().args(args).args(more).run()
    }
}

#[track_caller]
fn assert_denied(output: &Output, expected: &[&str]) {
    assert!(!output.status.success(), "the write must be denied:\n{output}");
    for words in expected {
        assert!(output.stderr.contains(words), "{words:?} is missing:\n{output}");
    }
}

fn last_error(reason: &str) -> Value {
    json!({"operation": "reconcile", "reason": reason, "message": "m", "lastTransitionTime": T1, "lastUpdateTime": T1})
}

fn writes_of_a_run_are_admitted(ctx: &Context) {
    for generation in GENERATIONS {
        let item = Item::with_generation(ctx, generation);
        let status =
            json!({"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "ProviderStatus"});
        item.trigger("b").pick_up();
        item.write(json!({"phase": "Progressing", "providerStatus": status}));
        item.write(json!({"exportRef": {"name": "item-export", "namespace": item.ns}}));
        item.write(json!({"lastError": last_error("Retry")}));
        item.finish("Succeeded", "b");
        item.trigger("c").pick_up().write(json!({"phase": "Progressing"})).finish("Failed", "c");
    }
}

fn an_unchanged_item_may_finish_without_other_phases(ctx: &Context) {
    for generation in GENERATIONS {
        let item = Item::with_generation(ctx, generation).pick_up_job_b().finish_job_b();
        item.trigger("c").write(json!({"phase": "Succeeded", "jobIDFinished": "c", "lastReconcileTime": T2}));
    }
}

fn a_job_may_fail_before_the_pickup_if_the_target_is_missing(ctx: &Context) {
    for generation in GENERATIONS {
        Item::with_generation(ctx, generation).trigger("b").finish("Failed", "b");
        Item::with_generation(ctx, generation).pick_up_job_b().finish("Failed", "b");
        let item = Item::with_generation(ctx, generation);
        item.delete().trigger("b").finish("DeleteFailed", "b");
    }
}

fn landscaper_may_fail_jobs_after_a_timeout(ctx: &Context) {
    for generation in GENERATIONS {
        let ended = json!({"phase": "Failed", "jobIDFinished": "b", "lastError": last_error("PickupTimeout")});
        Item::with_generation(ctx, generation).trigger("b").write(ended.clone());
        Item::with_generation(ctx, generation).pick_up_job_b().write(json!({"phase": "Progressing"})).write(ended);
    }
}

fn an_interrupt_may_fail_any_job(ctx: &Context) {
    for generation in GENERATIONS {
        let ended = |job: &str| json!({"phase": "Failed", "jobID": job, "jobIDFinished": job, "lastError": last_error("Interrupt")});
        Item::with_generation(ctx, generation).write(ended("c"));
        Item::with_generation(ctx, generation).trigger("b").write(ended("c"));
        Item::with_generation(ctx, generation).pick_up_job_b().write(ended("c"));
        Item::with_generation(ctx, generation).pick_up_job_b().finish_job_b().write(ended("c"));
        let item = Item::with_generation(ctx, generation);
        item.trigger("b").delete();
        item.write(json!({"phase": "InitDelete", "lastReconcileTime": T1}));
        item.write(json!({"phase": "DeleteFailed", "jobID": "c", "jobIDFinished": "c"}));
    }
}

fn a_test_reconcile_may_set_its_own_job(ctx: &Context) {
    for generation in GENERATIONS {
        let picked_up = json!({"jobID": "test", "phase": "Init", "lastReconcileTime": T2});
        Item::with_generation(ctx, generation).write(picked_up.clone());
        Item::with_generation(ctx, generation)
            .pick_up_job_b()
            .finish_job_b()
            .write(picked_up)
            .finish("Succeeded", "test");
    }
}

/// Checks that deployers may write the final phase first, and `jobIDFinished` in a second write. The container deployer
/// does this for a failure, and the mock deployer for any phase.
fn phase_and_finished_job_may_be_written_separately(ctx: &Context) {
    for generation in GENERATIONS {
        let item = Item::with_generation(ctx, generation).pick_up_job_b();
        item.write(json!({"phase": "Failed"})).write(json!({"jobIDFinished": "b"}));
        let item = Item::with_generation(ctx, generation).pick_up_job_b();
        item.write(json!({"phase": "Succeeded"})).write(json!({"jobIDFinished": "b"}));
        let item = Item::with_generation(ctx, generation).pick_up_job_b();
        item.assert_warned(json!({"phase": "Mocked"}), &["DP006"]).finish("Succeeded", "b");
    }
}

fn writes_of_a_deletion_are_admitted(ctx: &Context) {
    for generation in GENERATIONS {
        let item = Item::with_generation(ctx, generation).pick_up_job_b().finish_job_b();
        item.delete().trigger("c").write(json!({"phase": "InitDelete", "lastReconcileTime": T2}));
        item.write(json!({"phase": "Deleting"})).write(json!({"lastError": last_error("Retry")}));
        item.finish("DeleteFailed", "c");
        item.trigger("d").write(json!({"phase": "InitDelete", "lastReconcileTime": T2}));
        item.patch(r#"{"metadata": {"finalizers": null}}"#, &[]).expect_success();
        let item = Item::with_generation(ctx, generation).pick_up_job_b();
        item.write(json!({"phase": "Progressing"})).delete().write(json!({"phase": "Deleting"}));
        item.patch(r#"{"metadata": {"finalizers": null}}"#, &[]).expect_success();
    }
}

fn writes_of_older_deployers_are_admitted(ctx: &Context) {
    let item = Item::new(ctx);
    item.trigger("b");
    item.write(json!({"phase": "Init", "deployItemPhase": "Progressing", "lastReconcileTime": T1}));
    item.write(json!({"phase": "Progressing"}));
    item.write(json!({"phase": "Succeeded", "deployItemPhase": "Succeeded", "jobIDFinished": "b"}));
    item.trigger("c");
    item.assert_denied(
        json!({"phase": "Init", "deployItemPhase": "Progressing", "jobIDFinished": "c"}),
        &["deployItemPhase"],
    );
    item.delete().write(json!({"phase": "Init", "deployItemPhase": "Deleting", "lastReconcileTime": T2}));
    item.write(json!({"phase": "Deleting"}));
    item.write(json!({"phase": "Failed", "deployItemPhase": "Failed", "jobIDFinished": "c"}));
}

fn denies_finished_jobs_without_a_final_phase(ctx: &Context) {
    let expected = [
        "DP001 status.phase: job \"b\" is finished, but its phase is \"Init\"",
        "before: phase \"Init\", jobID \"b\", jobIDFinished \"\"",
        "now: phase \"Init\", jobID \"b\", jobIDFinished \"b\"",
        "help: write both at once: {phase: Succeeded, jobIDFinished: \"b\"}",
    ];
    Item::with_picked_up_job(ctx).assert_denied(json!({"jobIDFinished": "b"}), &expected);
}

fn denies_finishing_another_job(ctx: &Context) {
    let item = Item::with_succeeded_job(ctx);
    item.trigger("c").pick_up();
    let expected =
        ["DP002 status.jobIDFinished: jobIDFinished is \"older\", but the current job is \"c\"", "help: write"];
    item.assert_denied(json!({"phase": "Succeeded", "jobIDFinished": "older"}), &expected);
    item.assert_denied(json!({"jobIDFinished": null}), &["DP002"]);
}

fn denies_changes_of_a_result(ctx: &Context) {
    let item = Item::with_succeeded_job(ctx);
    item.assert_denied(json!({"phase": "Failed"}), &["DP003 status.phase: job \"b\" has finished as \"Succeeded\""]);
    item.write(json!({"conditions": []}));
}

fn denies_starting_without_a_pickup(ctx: &Context) {
    let item = Item::new(ctx);
    item.assert_denied(
        json!({"phase": "Init", "lastReconcileTime": T1}),
        &["DP004 status.phase", "there is no open job"],
    );
    item.trigger("b");
    item.assert_denied(json!({"phase": "Init"}), &["DP004 status.lastReconcileTime", "lastReconcileTime is not set"]);
    item.write(json!({"phase": "Init", "lastReconcileTime": T2})).finish("Succeeded", "b").trigger("c");
    item.assert_denied(json!({"phase": "Init", "lastReconcileTime": T1}), &["which is before the old one"]);
    item.write(json!({"phase": "Init", "lastReconcileTime": T2}));
}

fn denies_uninstalling_items_that_are_not_deleted(ctx: &Context) {
    let item = Item::with_picked_up_job(ctx);
    item.assert_denied(json!({"phase": "Deleting"}), &["DP005 status.phase", "no deletion timestamp"]);
    item.assert_denied(json!({"phase": "DeleteFailed", "jobIDFinished": "b"}), &["DP005"]);
}

fn warns_about_unknown_phases(ctx: &Context) {
    Item::with_picked_up_job(ctx)
        .assert_warned(json!({"phase": "succeeded"}), &["DP006 status.phase", "did you mean Succeeded?"]);
}

fn warns_about_replaced_jobs(ctx: &Context) {
    Item::with_picked_up_job(ctx).assert_warned(json!({"jobID": "c"}), &["DP014 status.jobID: job \"b\" is replaced"]);
}

fn denies_violations_during_deletion(ctx: &Context) {
    let item = Item::with_picked_up_job(ctx);
    item.delete()
        .write(json!({"phase": "Deleting"}))
        .assert_denied(json!({"jobIDFinished": "b"}), &["DP001", "being deleted"]);
}

fn denies_changes_of_the_type(ctx: &Context) {
    let item = Item::new(ctx);
    let changed = yaml("item", "landscaper.gardener.cloud/container", "");
    rejects(ctx, &item.ns, &changed, &["DP007 spec.type: the type was", "create another DeployItem"]);
}

fn annotations_must_match_the_spec(ctx: &Context) {
    let item = Item::new(ctx);
    let annotated = |kind: &str, target: &str| {
        format!(
            "{{\"metadata\": {{\"annotations\": {{\"landscaper.gardener.cloud/deployer-type\": \"{kind}\", \
             \"landscaper.gardener.cloud/deployer-target-name\": \"{target}\"}}}}}}"
        )
    };
    let expected = ["DP008 metadata.annotations[landscaper.gardener.cloud/deployer-type]", "deployer-target-name]"];
    assert_denied(&item.patch(&annotated("helm", "my-target"), &[]), &expected);
    item.patch(&annotated(MANIFEST, ".noTargetName"), &[]).expect_success();
}

fn denies_removal_of_the_finalizer_before_deletion(ctx: &Context) {
    let item = Item::new(ctx);
    let remove_finalizers = r#"{"metadata": {"finalizers": null}}"#;
    assert_denied(&item.patch(remove_finalizers, &[]), &["DP009 metadata.finalizers", "delete the DeployItem first"]);
    item.delete();
    item.patch(remove_finalizers, &[]).expect_success();
}

fn denies_writes_to_items_of_other_types(ctx: &Context) {
    let item = Item::new(ctx);
    item.trigger("b");
    let picked_up = json!({"phase": "Init", "lastReconcileTime": T1});
    let expected = ["DP010 spec.type: \"other-deployers\" does not serve the type", "in any way"];
    assert_denied(&item.write_as("other-deployers", picked_up.clone()), &expected);
    let impersonation = ["--as", "other-deployers", "--as-group", "system:masters"];
    assert_denied(&item.patch(r#"{"metadata": {"labels": {"a": "b"}}}"#, &impersonation), &["DP010"]);
    let unknown = item.write_as("somebody", json!({"conditions": []})).expect_success();
    assert!(unknown.stderr.contains("Warning: DP010 status: \"somebody\""), "{unknown}");
    let own = item.write_as("manifest-deployer", picked_up).expect_success();
    assert!(!own.stderr.contains("Warning:"), "{own}");
}

fn denies_writes_to_items_of_other_targets(ctx: &Context) {
    let ns = ctx.cluster.namespace("deployer");
    let target = |zone: &str| {
        format!(
            "apiVersion: landscaper.gardener.cloud/v1alpha1\nkind: Target\nmetadata: {{name: {zone}, labels: {{zone: \
             {zone}}}}}\nspec: {{type: landscaper.gardener.cloud/kubernetes-cluster}}\n"
        )
    };
    for zone in ["fenced", "open"] {
        accepts(ctx, &ns, &target(zone));
    }
    let write = |name, zone: &str| {
        create(ctx, &ns, &yaml(name, "example.org/fenced", &format!("  target: {{name: {zone}, namespace: {ns}}}\n")));
        let item = Item { ctx, ns: ns.clone(), name, generation: Generation::Newer };
        item.trigger("b").write_as("fenced-deployer", json!({"phase": "Init", "lastReconcileTime": T1}))
    };
    assert_denied(&write("outside", "open"), &["DP010 spec.target.name", "but not the Target \"open\""]);
    write("inside", "fenced").expect_success();
    write("nowhere", "missing").expect_success();
}

fn warns_about_a_type_without_a_deployer(ctx: &Context) {
    let ns = ctx.cluster.namespace("deployer");
    let expected = ["DP011 spec.type: no known deployer serves", "did you mean \"example.org/fenced\"?"];
    warns(ctx, &ns, &yaml("item", "example.org/fence", ""), &expected);
}

fn denies_configurations_that_the_deployer_cannot_read(ctx: &Context) {
    let ns = ctx.cluster.namespace("deployer");
    let wrong = yaml("item", MANIFEST, "").replace("v1alpha2", "v1beta1");
    rejects(ctx, &ns, &wrong, &["DP012 spec.config.apiVersion", "help: write manifest.deployer"]);
    let wrong = yaml("item", "landscaper.gardener.cloud/helm", "").replace("manifest.deployer", "helm.deployer");
    rejects(
        ctx,
        &ns,
        &wrong.replace("v1alpha2", "v1alpha1"),
        &["spec.config.chart", "spec.config.name", "spec.config.namespace"],
    );
}

fn denies_invalid_values_of_delete_without_uninstall(ctx: &Context) {
    let item = Item::new(ctx);
    let annotated = |value: &str| {
        format!(
            "{{\"metadata\": {{\"annotations\": {{\"landscaper.gardener.cloud/delete-without-uninstall\": \"{value}\"}}}}}}"
        )
    };
    assert_denied(&item.patch(&annotated("yes"), &[]), &["DP013", "with \"yes\", a deletion uninstalls everything"]);
    assert!(item.patch(&annotated("false"), &[]).expect_success().stderr.contains("Warning: DP013"));
    item.patch(&annotated("true"), &[]).expect_success();
}

/// Checks that only users in `deployers.restorers` may restore the status of a DeployItem with a running job, for
/// example from a backup. For other users, this write is denied.
///
/// Users in `deployers.restorers` also have limits. They must not overwrite the status of a job that a deployer has
/// picked up, and must not write a contradictory status.
fn only_restorers_may_restore_statuses(ctx: &Context) {
    let status = json!({"phase": "Progressing", "jobID": "b", "jobIDFinished": "a"});
    let item = Item::new(ctx);
    assert_denied(&item.write_as("admin", status.clone()), &["DP002", "DP004"]);
    let restored = item.write_as("backup", status.clone()).expect_success();
    assert!(!restored.stderr.contains("Warning:"), "{restored}");
    assert_denied(&Item::with_picked_up_job(ctx).write_as("backup", status), &["DP002"]);
    let contradiction = json!({"phase": "Progressing", "jobID": "b", "jobIDFinished": "b"});
    assert_denied(&Item::new(ctx).write_as("backup", contradiction), &["DP001"]);
    let complete = json!({"phase": "Succeeded", "jobID": "b", "jobIDFinished": "b", "lastReconcileTime": T1});
    Item::new(ctx).write(complete);
}
