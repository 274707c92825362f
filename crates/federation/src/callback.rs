//! The provider's authorization response at the callback (RFC 6749, section 4.1.2; RFC 9207).

use crate::{Check, Discovery, check::quoted};

/// Validates the parameters of an authorization response whose `state` was verified. Returns the code, if every check passed.
pub fn check_callback(
    parameters: &[(String, String)],
    discovery: &Discovery,
) -> (Vec<Check>, Option<String>) {
    let values = |name: &str| -> Vec<&str> {
        parameters.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    };
    let mut checks = Vec::new();
    let repeated = ["code", "state", "error", "iss"].into_iter().find(|name| values(name).len() > 1);
    checks.extend(repeated.map(|name| Check::failed("answer", format!("{name} is there more than once."))));
    if let Some(error) = values("error").first() {
        checks.push(error_check(error, values("error_description").first().copied()));
    }
    checks.push(issuer_check(values("iss").first().copied(), discovery));
    let code = values("code").first().filter(|code| !code.is_empty()).map(|code| (*code).to_owned());
    if checks.iter().all(|check| check.name != "answer") {
        checks.push(match code {
            Some(_) => Check::new("answer", true, "The provider answered by a code."),
            None => Check::failed("answer", "The answer has neither a code nor an error."),
        });
    }
    let has_passed = checks.iter().all(|check| check.passed);
    (checks, code.filter(|_| has_passed))
}

fn error_check(error: &str, description: Option<&str>) -> Check {
    let about = description.map(|text| format!(": {}", quoted(text))).unwrap_or_default();
    let check = Check::failed("answer", format!("The provider refused by {}{about}.", quoted(error)));
    match error {
        "invalid_scope" => check.with_option("AdditionalScopes"),
        "invalid_target" => check.with_option("RequestResources"),
        "unauthorized_client" | "invalid_client" => check.with_option("ClientId"),
        "invalid_request" => check.with_option("CallbackPath"),
        _ => check,
    }
}

/// Whether the response is this provider's: otherwise the code of one provider could be sent to another (mix-up attack).
fn issuer_check(issuer: Option<&str>, discovery: &Discovery) -> Check {
    match issuer {
        Some(issuer) => Check::equal("answerIssuer", "iss of the answer", issuer, &discovery.issuer)
            .with_option("Authority"),
        None if discovery.sends_issuer => Check::failed(
            "answerIssuer",
            "The provider says that its answers have iss, and this one has none.",
        ),
        None => Check::new("answerIssuer", true, "The provider does not name itself in answers."),
    }
}
