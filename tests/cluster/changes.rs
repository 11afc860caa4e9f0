//! Scenarios that change a release: restarts, upgrades, scaling and configuration.

use std::time::Duration;

use crate::documentation::Page;
use crate::images;
use crate::scenarios::{RELOAD_TIMEOUT, UPGRADE, WAIT_FOR_ROLLOUT};
use crate::stage::TestEnvironment;

/// A ConfigMap with a kustomize tree that violates rule KZ004. The test changes the level of this rule. The change does
/// not affect the writes of the module `streams`, because its objects violate other rules.
const TREE_WITH_MISSING_FILE: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: gap, namespace: default, labels: {portcullis.dev/kustomize-tree: kubectl}}
data:
  kustomization.yaml: |
    resources: [missing.yaml]
";
const CREATE_WRONG_TREE: &str = "kubectl create --dry-run=server -f gap.yaml";
const IMAGES: &str = "kubectl -n portcullis-system get pods -l app.kubernetes.io/name=portcullis \
                      --field-selector=status.phase=Running -o jsonpath='{.items[*].spec.containers[0].image}'";
const STATE: &str = "kubectl -n portcullis-system get deployment/portcullis configmap/portcullis \
                     -o jsonpath='{.items[*].metadata.generation} {.items[1].data}'";
/// Maximum time until the pods of a previous ReplicaSet have ended. These pods have a grace period.
const POD_END_TIMEOUT: Duration = Duration::from_mins(2);

/// Restarts all pods of the server with `kubectl rollout restart`.
pub fn restart(environment: &mut TestEnvironment) -> Result<(), String> {
    environment
        .succeed(&format!("kubectl -n portcullis-system rollout restart deployment/portcullis\n{WAIT_FOR_ROLLOUT}"))?;
    Ok(())
}

/// Scales the server to one replica, and back to two.
pub fn scale(environment: &mut TestEnvironment) -> Result<(), String> {
    for replicas in [1, 2] {
        environment.succeed(&format!(
            "kubectl -n portcullis-system scale deployment/portcullis --replicas={replicas}\n{WAIT_FOR_ROLLOUT}"
        ))?;
        let is_scaled = |answer: &crate::documentation::Answer| answer.text.split_whitespace().count() == replicas;
        environment.wait_until(POD_END_TIMEOUT, IMAGES, is_scaled)?;
    }
    Ok(())
}

/// Deletes the pods of the server one by one, as a drain of their nodes does.
pub fn drain(environment: &mut TestEnvironment) -> Result<(), String> {
    let pods =
        environment.succeed("kubectl -n portcullis-system get pods -l app.kubernetes.io/name=portcullis -o name")?;
    for pod in pods.lines() {
        environment
            .succeed(&format!("kubectl -n portcullis-system delete {pod} --timeout=120s\n{WAIT_FOR_ROLLOUT}"))?;
    }
    Ok(())
}

/// Upgrades to another image, and rolls back as docs/upgrading.md describes.
pub fn upgrade(environment: &mut TestEnvironment) -> Result<(), String> {
    let next = format!("{}:{}", images::REPOSITORY, images::NEXT);
    environment.succeed(&format!("{UPGRADE} --wait --set image.tag={}", images::NEXT))?;
    environment
        .wait_until(POD_END_TIMEOUT, IMAGES, |answer| answer.text.split_whitespace().all(|image| image == next))?;
    environment.succeed(&Page::read("upgrading.md").block("## If an upgrade fails", "sh", 0))?;
    environment.succeed(WAIT_FOR_ROLLOUT)?;
    environment.wait_until(POD_END_TIMEOUT, IMAGES, |answer| !answer.text.contains(&next))?;
    Ok(())
}

/// Changes the level of a rule, and then restores the old level. Checks that no pod restarts.
pub fn configure(environment: &mut TestEnvironment) -> Result<(), String> {
    environment.shell.write("gap.yaml", TREE_WITH_MISSING_FILE);
    let before = environment.succeed(IMAGES.replace(".spec.containers[0].image", ".metadata.name").as_str())?;
    environment.wait_until(RELOAD_TIMEOUT, CREATE_WRONG_TREE, |answer| !answer.is_success)?;
    environment.succeed(&format!("{UPGRADE} --set config.rules.KZ004=warn"))?;
    environment.wait_until(RELOAD_TIMEOUT, CREATE_WRONG_TREE, |answer| {
        answer.is_success && answer.text.contains("Warning: KZ004")
    })?;
    environment.succeed(&format!("{UPGRADE} --set config.rules.KZ004=deny"))?;
    environment.wait_until(RELOAD_TIMEOUT, CREATE_WRONG_TREE, |answer| !answer.is_success)?;
    let after = environment.succeed(IMAGES.replace(".spec.containers[0].image", ".metadata.name").as_str())?;
    if before == after { Ok(()) } else { Err(format!("pods were replaced: {before}, {after}")) }
}

/// Tries to upgrade to a configuration with an unknown rule. Checks that the values schema of the chart rejects the
/// configuration. If Helm skips this schema, the chart's hook must reject the configuration. In both cases, the release
/// must not change.
pub fn configure_badly(environment: &mut TestEnvironment) -> Result<(), String> {
    let before = environment.succeed(STATE)?;
    let bad = format!("{UPGRADE} --set config.rules.KZ999=warn");
    let output = environment.shell.run(&bad).failure()?;
    if !output.contains("at '/config/rules': additional properties 'KZ999' not allowed") {
        return Err(format!("the schema of the chart must reject the value: {output}"));
    }
    let output = environment.shell.run(&format!("{bad} --skip-schema-validation")).failure()?;
    if !output.contains("KZ999") {
        return Err(format!("the hook must report the rule: {output}"));
    }
    let after = environment.succeed(STATE)?;
    if before != after {
        return Err(format!("something changed:\n{before}\n{after}"));
    }
    environment.succeed("helm rollback portcullis --namespace portcullis-system")?;
    Ok(())
}
