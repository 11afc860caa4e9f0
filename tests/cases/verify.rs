//! The checks that the API server makes on the response of a webhook.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use portcullis::admission::Phase;
use serde_json::Value;

/// Checks the AdmissionReview `answer` of version v1, as `VerifyAdmissionResponse` of the API server does. Also checks
/// the status of denials, and the limits of warnings and audit annotations. Returns the parsed AdmissionReview.
pub fn verify(answer: &[u8], uid: &str, phase: Phase) -> Result<Value, String> {
    let answer: Value = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    let require = |holds: bool, what: &str| if holds { Ok(()) } else { Err(format!("{what}: {answer}")) };
    require(answer["kind"] == "AdmissionReview", "kind")?;
    require(answer["apiVersion"] == "admission.k8s.io/v1", "apiVersion")?;
    let response = &answer["response"];
    require(response["uid"] == uid, "uid")?;
    require(response["allowed"].is_boolean(), "allowed")?;
    let has = |key: &str| response.get(key).is_some();
    require(has("patch") == has("patchType"), "patch and patchType together")?;
    require(!has("patch") || phase == Phase::Mutate, "no patch from a validating webhook")?;
    if let Some(patch) = response["patch"].as_str() {
        require(response["patchType"] == "JSONPatch", "patchType")?;
        let operations: Value =
            STANDARD.decode(patch).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        require(operations.as_array().is_some_and(|operations| !operations.is_empty()), "a patch with operations")?;
    }
    let allowed = response["allowed"] == true;
    require(allowed != has("status"), "a status if and only if denied")?;
    if !allowed {
        let code = response["status"]["code"].as_u64().unwrap_or_default();
        require((400..600).contains(&code), "code")?;
        require(response["status"]["message"].as_str().is_some_and(|text| !text.is_empty()), "message")?;
    }
    let warnings: Vec<_> = response["warnings"].as_array().into_iter().flatten().collect();
    require(warnings.len() <= 16, "at most 16 warnings")?;
    let fits = |text: &&Value| text.as_str().is_some_and(|text| text.chars().count() <= 256 && !text.contains('\n'));
    require(warnings.iter().all(fits), "warnings of at most 256 characters")?;
    for key in response["auditAnnotations"].as_object().into_iter().flat_map(serde_json::Map::keys) {
        let valid = !key.is_empty() && key.len() <= 63 && key.chars().all(|c| c.is_ascii_alphanumeric());
        require(valid, "valid audit annotation keys")?;
    }
    Ok(answer)
}
