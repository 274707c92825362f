//! What a provider's answer at the callback is (RFC 6749, section 4.1.2; RFC 9207).

use crate::{Check, Discovery, check::told};

/// Judges the parameters of an answer whose `state` was found to be the request's; the code, where there is one.
pub fn judge_answer(parameters: &[(String, String)], discovery: &Discovery) -> (Vec<Check>, Option<String>) {
    let values = |name: &str| -> Vec<&str> {
        parameters.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    };
    let mut checks = Vec::new();
    let twice = ["code", "state", "error", "iss"].into_iter().find(|name| values(name).len() > 1);
    checks.extend(twice.map(|name| Check::failed("answer", format!("{name} is there more than once."))));
    if let Some(error) = values("error").first() {
        checks.push(refused(error, values("error_description").first().copied()));
    }
    checks.push(named(values("iss").first().copied(), discovery));
    let code = values("code").first().filter(|code| !code.is_empty()).map(|code| (*code).to_owned());
    if checks.iter().all(|check| check.name != "answer") {
        checks.push(match code {
            Some(_) => Check::new("answer", true, "The provider answered by a code."),
            None => Check::failed("answer", "The answer has neither a code nor an error."),
        });
    }
    let is_good = checks.iter().all(|check| check.passed);
    (checks, code.filter(|_| is_good))
}

fn refused(error: &str, description: Option<&str>) -> Check {
    let about = description.map(|text| format!(": {}", told(text))).unwrap_or_default();
    let check = Check::failed("answer", format!("The provider refused by {}{about}.", told(error)));
    match error {
        "invalid_scope" => check.by("AdditionalScopes"),
        "invalid_target" => check.by("RequestResources"),
        "unauthorized_client" | "invalid_client" => check.by("ClientId"),
        "invalid_request" => check.by("CallbackPath"),
        _ => check,
    }
}

/// Whether the answer is this provider's: else the code of one would be shown to another (mix-up).
fn named(issuer: Option<&str>, discovery: &Discovery) -> Check {
    match issuer {
        Some(issuer) => {
            Check::same("answerIssuer", "iss of the answer", issuer, &discovery.issuer).by("Authority")
        }
        None if discovery.names_itself => Check::failed(
            "answerIssuer",
            "The provider says that its answers have iss, and this one has none.",
        ),
        None => Check::new("answerIssuer", true, "The provider does not name itself in answers."),
    }
}
