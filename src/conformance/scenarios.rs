//! The scenarios that test a deployer.

use super::ConformanceError;
use super::landscaper::Landscaper;
use super::record::Version;
use super::report::Scenario;
use super::requirements::{self, TestedRequirement};
use crate::landscaper::annotations::DELETE_WITHOUT_UNINSTALL;
use crate::landscaper::deployer::status::{Job, Status};

/// The results of all test scenarios: which ones ran, which DeployItems they created, and which expected writes of the
/// deployer were missing.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) scenarios: Vec<Scenario>,
    /// The DeployItems that the scenarios created.
    pub(super) items: Vec<Played>,
    /// One entry for each time that the test waited for the deployer: the tested requirement, the name of the
    /// DeployItem, and an error message. The message is set only if the deployer did not make an expected write in
    /// time.
    pub(super) waited: Vec<(TestedRequirement, String, Option<String>)>,
}

/// A DeployItem that a scenario has created.
#[derive(Debug)]
pub(super) struct Played {
    pub(super) name: String,
    pub(super) scenario: &'static str,
    /// Whether the tested deployer may write the DeployItem. False if the type or Target of the DeployItem belongs to
    /// another deployer.
    pub(super) is_its_own: bool,
}

/// A running conformance test: the simulated Landscaper, and the outcome so far.
struct Run<'k> {
    kit: &'k Landscaper,
    outcome: Outcome,
}

/// Runs all scenarios, one after the other.
pub(super) async fn all(kit: &Landscaper) -> Result<Outcome, ConformanceError> {
    let mut run = Run { kit, outcome: Outcome::default() };
    run.reconcile().await?;
    run.failure().await?;
    run.keep().await?;
    run.foreign_type().await?;
    run.foreign_target().await?;
    Ok(run.outcome)
}

impl Run<'_> {
    /// Runs the scenarios `reconcile` and `deletion` with one DeployItem. Asks the deployer two times to process the
    /// DeployItem, and waits for each result. At other times, the deployer must not write the DeployItem. Finally
    /// deletes the DeployItem, and waits until the deployer removes the finalizer.
    async fn reconcile(&mut self) -> Result<(), ConformanceError> {
        let name = self.own("reconcile").await?;
        self.quiet(&name, requirements::WAITS).await;
        for _ in 0..2 {
            self.job(&name, "Succeeded").await?;
            self.quiet(&name, requirements::WAITS).await;
        }
        self.kit.delete(&name).await?;
        self.kit.trigger_deletion(&name).await?;
        self.gone(&name, requirements::UNINSTALLS).await;
        self.ran("reconcile");
        self.ran("deletion");
        Ok(())
    }

    async fn failure(&mut self) -> Result<(), ConformanceError> {
        let Some(config) = self.kit.options.failing_config.clone() else {
            return self.skipped("failure", "set --failing-config to a configuration that the deployer cannot deploy");
        };
        let options = &self.kit.options;
        let name = self.kit.create("failure", &options.type_name, options.target.as_deref(), Some(&config)).await?;
        self.plays(&name, "failure", true);
        if self.job(&name, "Failed").await? {
            let limit = self.kit.options.quiet;
            let explains = |version: &Version| version.object.pointer("/status/lastError/message").is_some();
            let explained = self.kit.recorder.wait(&name, limit, explains).await;
            self.waited(
                requirements::EXPLAINS,
                &name,
                (!explained).then(|| "status.lastError has no message".to_owned()),
            );
        }
        self.ran("failure");
        Ok(())
    }

    /// Runs the scenario `delete-without-uninstall`. Deletes a DeployItem with the annotation
    /// `delete-without-uninstall`, and waits until the deployer removes the finalizer.
    async fn keep(&mut self) -> Result<(), ConformanceError> {
        let name = self.own("keep").await?;
        self.job(&name, "Succeeded").await?;
        self.kit.annotate(&name, DELETE_WITHOUT_UNINSTALL, "true").await?;
        self.kit.delete(&name).await?;
        self.kit.trigger_deletion(&name).await?;
        self.gone(&name, requirements::KEEPS).await;
        self.ran("delete-without-uninstall");
        Ok(())
    }

    async fn foreign_type(&mut self) -> Result<(), ConformanceError> {
        let type_name = format!("{}-of-another-deployer", self.kit.options.type_name);
        let config = self.kit.options.config.clone();
        let name = self.kit.create("foreign", &type_name, None, config.as_ref()).await?;
        self.plays(&name, "foreign type", false);
        self.kit.trigger(&name).await?;
        self.quiet(&name, requirements::OTHERS_ITEMS).await;
        self.ran("foreign type");
        Ok(())
    }

    async fn foreign_target(&mut self) -> Result<(), ConformanceError> {
        let Some(target) = self.kit.options.foreign_target.clone() else {
            return self.skipped("foreign target", "set --foreign-target to a Target that the deployer does not serve");
        };
        let options = &self.kit.options;
        let name = self.kit.create("target", &options.type_name, Some(&target), options.config.as_ref()).await?;
        self.plays(&name, "foreign target", false);
        self.kit.trigger(&name).await?;
        self.quiet(&name, requirements::OTHERS_ITEMS).await;
        self.ran("foreign target");
        Ok(())
    }

    async fn own(&mut self, scenario: &'static str) -> Result<String, ConformanceError> {
        let options = &self.kit.options;
        let config = options.config.as_ref();
        let name = self.kit.create(scenario, &options.type_name, options.target.as_deref(), config).await?;
        self.plays(&name, scenario, true);
        Ok(name)
    }

    /// Requests a job of the DeployItem `name`, and waits until the job ends. Then records whether the phase is
    /// `wanted`, such as `Succeeded`, and whether the deployer has picked up the job. Returns whether the job ended in
    /// time.
    async fn job(&mut self, name: &str, wanted: &str) -> Result<bool, ConformanceError> {
        let job = self.kit.trigger(name).await?;
        let limit = self.kit.options.timeout;
        let is_done = |version: &Version| {
            let status = Status::of(&version.object);
            status.job() == Job::Done && status.job == job
        };
        let has_ended = self.kit.recorder.wait(name, limit, is_done).await;
        let has_result = has_ended
            && self
                .kit
                .recorder
                .wait(name, limit.min(self.kit.options.quiet), |version| {
                    Status::of(&version.object).phase_text == wanted
                })
                .await;
        let problem = match (has_ended, has_result) {
            (true, true) => None,
            (true, false) => Some(format!("job {job:?} did not end with the phase {wanted}")),
            (false, _) => Some(format!("job {job:?} was not finished within {limit:?}")),
        };
        self.waited(requirements::FINISHES, name, problem);
        let is_picked_up = |version: &Version| Status::of(&version.object).is_picked_up();
        let picked_up = self.kit.recorder.wait(name, self.kit.options.quiet, is_picked_up).await;
        let problem = format!("job {job:?}: lastReconcileTime is missing, or before jobIDGenerationTime");
        self.waited(requirements::PICKS_UP, name, (!picked_up).then_some(problem));
        Ok(has_ended)
    }

    /// Gives the deployer time to violate `requirement`, which forbids it to write the DeployItem `name`. Waits for the
    /// duration `quiet` of the test options, and then records that the requirement was tested. The module `judge`
    /// later checks whether the deployer wrote the DeployItem.
    async fn quiet(&mut self, name: &str, requirement: TestedRequirement) {
        tokio::time::sleep(self.kit.options.quiet).await;
        self.waited(requirement, name, None);
    }

    async fn gone(&mut self, name: &str, requirement: TestedRequirement) {
        let limit = self.kit.options.timeout;
        let is_gone = self.kit.recorder.wait(name, limit, |version| version.is_gone).await;
        self.waited(requirement, name, (!is_gone).then(|| format!("it still exists after {limit:?}")));
    }

    fn waited(&mut self, requirement: TestedRequirement, name: &str, problem: Option<String>) {
        self.outcome.waited.push((requirement, name.to_owned(), problem));
    }

    fn plays(&mut self, name: &str, scenario: &'static str, is_its_own: bool) {
        self.outcome.items.push(Played { name: name.to_owned(), scenario, is_its_own });
    }

    fn ran(&mut self, name: &'static str) {
        self.outcome.scenarios.push(Scenario { name, skipped: None });
    }

    fn skipped(&mut self, name: &'static str, why: &str) -> Result<(), ConformanceError> {
        self.outcome.scenarios.push(Scenario { name, skipped: Some(why.to_owned()) });
        Ok(())
    }
}
