//! Scenarios that change a release: restarts, upgrades, scaling and configuration.

use std::time::Duration;

use crate::documentation::Page;
use crate::images;
use crate::scenarios::{RELOAD, ROLLED_OUT, UPGRADE};
use crate::stage::Stage;

/// A ConfigMap with a kustomize tree that violates rule KZ004. The objects of the streams do not violate this rule.
const GAP: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: gap, namespace: default, labels: {portcullis.dev/kustomize-tree: kubectl}}
data:
  kustomization.yaml: |
    resources: [missing.yaml]
";
const WRITE_GAP: &str = "kubectl create --dry-run=server -f gap.yaml";
const IMAGES: &str = "kubectl -n portcullis-system get pods -l app.kubernetes.io/name=portcullis \
                      --field-selector=status.phase=Running -o jsonpath='{.items[*].spec.containers[0].image}'";
const STATE: &str = "kubectl -n portcullis-system get deployment/portcullis configmap/portcullis \
                     -o jsonpath='{.items[*].metadata.generation} {.items[1].data}'";
/// Timeout for the pods of a previous ReplicaSet to end. They have a grace period.
const ENDED: Duration = Duration::from_mins(2);

/// Restarts all pods of the server with `kubectl rollout restart`.
pub fn restart(stage: &mut Stage) -> Result<(), String> {
    stage.succeed(&format!("kubectl -n portcullis-system rollout restart deployment/portcullis\n{ROLLED_OUT}"))?;
    Ok(())
}

/// Scales the server to one replica, and back to two.
pub fn scale(stage: &mut Stage) -> Result<(), String> {
    for replicas in [1, 2] {
        stage.succeed(&format!(
            "kubectl -n portcullis-system scale deployment/portcullis --replicas={replicas}\n{ROLLED_OUT}"
        ))?;
        let is_scaled = |answer: &crate::documentation::Answer| answer.text.split_whitespace().count() == replicas;
        stage.until(ENDED, IMAGES, is_scaled)?;
    }
    Ok(())
}

/// Deletes the pods of the server one by one, as when nodes are drained.
pub fn drain(stage: &mut Stage) -> Result<(), String> {
    let pods = stage.succeed("kubectl -n portcullis-system get pods -l app.kubernetes.io/name=portcullis -o name")?;
    for pod in pods.lines() {
        stage.succeed(&format!("kubectl -n portcullis-system delete {pod} --timeout=120s\n{ROLLED_OUT}"))?;
    }
    Ok(())
}

/// Upgrades to another image, and rolls back as docs/upgrading.md says.
pub fn upgrade(stage: &mut Stage) -> Result<(), String> {
    let next = format!("{}:{}", images::REPOSITORY, images::NEXT);
    stage.succeed(&format!("{UPGRADE} --wait --set image.tag={}", images::NEXT))?;
    stage.until(ENDED, IMAGES, |answer| answer.text.split_whitespace().all(|image| image == next))?;
    stage.succeed(&Page::read("upgrading.md").block("## If an upgrade fails", "sh", 0))?;
    stage.succeed(ROLLED_OUT)?;
    stage.until(ENDED, IMAGES, |answer| !answer.text.contains(&next))?;
    Ok(())
}

/// Changes the level of a rule, and back. Checks that no pod restarts.
pub fn configure(stage: &mut Stage) -> Result<(), String> {
    stage.shell.write("gap.yaml", GAP);
    let before = stage.succeed(IMAGES.replace(".spec.containers[0].image", ".metadata.name").as_str())?;
    stage.until(RELOAD, WRITE_GAP, |answer| !answer.is_success)?;
    stage.succeed(&format!("{UPGRADE} --set config.rules.KZ004=warn"))?;
    stage.until(RELOAD, WRITE_GAP, |answer| answer.is_success && answer.text.contains("Warning: KZ004"))?;
    stage.succeed(&format!("{UPGRADE} --set config.rules.KZ004=deny"))?;
    stage.until(RELOAD, WRITE_GAP, |answer| !answer.is_success)?;
    let after = stage.succeed(IMAGES.replace(".spec.containers[0].image", ".metadata.name").as_str())?;
    if before == after { Ok(()) } else { Err(format!("pods were replaced: {before}, {after}")) }
}

/// Tries to upgrade to a configuration with an unknown rule. Checks that the schema of the chart rejects it, that the
/// hook rejects it if the schema is skipped, and that the release does not change.
pub fn configure_badly(stage: &mut Stage) -> Result<(), String> {
    let before = stage.succeed(STATE)?;
    let bad = format!("{UPGRADE} --set config.rules.KZ999=warn");
    let refused = stage.shell.run(&bad).failure()?;
    if !refused.contains("at '/config/rules': additional properties 'KZ999' not allowed") {
        return Err(format!("the schema was to refuse it: {refused}"));
    }
    let refused = stage.shell.run(&format!("{bad} --skip-schema-validation")).failure()?;
    if !refused.contains("KZ999") {
        return Err(format!("the hook was to name the rule: {refused}"));
    }
    let after = stage.succeed(STATE)?;
    if before != after {
        return Err(format!("something changed:\n{before}\n{after}"));
    }
    stage.succeed("helm rollback portcullis --namespace portcullis-system")?;
    Ok(())
}
