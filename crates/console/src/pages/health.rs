//! Health of the server: probes, background jobs and metrics, each with a link to its remedy.

use chancery_record::Timestamp;
use chancery_resource::{Permit, Problem};
use chancery_web::{AnswerBody, HealthReport, JobState};
use http::Response;
use serde_json::json;

use super::cells::SOON_MS;
use crate::shell::{
    components::{Card, Line},
    fields::rfc3339,
    visit::Visit,
};

/// When a metric needs attention.
#[derive(Clone, Copy)]
enum Threshold {
    /// Never: it is shown for information.
    Informational,
    /// From this value on.
    AtLeast(i64),
    /// The value is a future timestamp: shortly before it. Zero is healthy.
    Expiry,
}

/// The relevant metrics: name, threshold, and the page of the remedy.
const FIGURES: [(&str, Threshold, &str); 14] = [
    ("mails_waiting", Threshold::AtLeast(100), "/console/welcome?step=mail"),
    ("mails_dead", Threshold::AtLeast(1), "/console/welcome?step=mail"),
    ("signing_certificate_end_time", Threshold::Expiry, "/console/CertStore"),
    ("audit_certificates_broken", Threshold::AtLeast(1), "/console/CertStore"),
    ("audit_unlogged", Threshold::AtLeast(10_000), "/console/CustomAuditTrail"),
    ("events_unplaced", Threshold::AtLeast(10_000), ""),
    ("event_trails_stuck", Threshold::AtLeast(1), ""),
    ("event_pruning_stopped", Threshold::AtLeast(1), ""),
    ("revocations_failed", Threshold::AtLeast(1), "/console/IdentityReplacement?view=ending"),
    ("logout_dead", Threshold::AtLeast(1), "/console/ClientApp"),
    ("passkey_trust_failures", Threshold::AtLeast(3), ""),
    ("store_waiting", Threshold::AtLeast(64), ""),
    ("log_dropped", Threshold::AtLeast(1), ""),
    ("connections", Threshold::Informational, ""),
];

/// The pages of the remedies of jobs.
const JOB_PAGES: [(&str, &str); 6] = [
    ("mail", "/console/welcome?step=mail"),
    ("certify", "/console/CertStore"),
    ("growing", "/console/CustomAuditTrail"),
    ("revoke", "/console/IdentityReplacement?view=ending"),
    ("sign-out", "/console/SignInSession"),
    ("purge", "/console/store/default/User?view=deleted"),
];

/// A job is late after this many intervals since its last success, but never before this time, in ms.
const LATE_AFTER_RESTS: i64 = 3;
const AT_LEAST_MS: i64 = 5 * 60_000;

/// Shows the page.
///
/// # Errors
/// The user is no system administrator.
pub async fn show(visit: &Visit<'_>) -> Result<Response<AnswerBody>, Problem> {
    if !visit.visitor.has(Permit::SystemAdmin) {
        return Err(visit.missing_role(Permit::SystemAdmin));
    }
    let words = visit.words;
    let report = visit.app.health().await;
    let jobs = report.jobs.iter().map(|job| job_line(visit, job)).collect();
    let figures = FIGURES
        .iter()
        .filter_map(|(name, threshold, href)| figure_line(visit, &report, name, *threshold, href))
        .collect();
    let cards =
        [ready(visit, &report), card(visit, "health_jobs", jobs), card(visit, "health_figures", figures)];
    let heading = words.page("health");
    let content = json!({ "heading": heading, "about": words.page("health_about"), "back": null, "acts": [], "cards": json!(cards) });
    visit.page(200, "cards.html", heading, &content)
}

/// A card with the tone of its worst line.
fn card(visit: &Visit<'_>, title: &str, lines: Vec<Line>) -> Card {
    let has = |tone: &str| lines.iter().any(|line| line.tone == tone);
    let tone = if has("bad") {
        "bad"
    } else if has("warn") {
        "warn"
    } else {
        "good"
    };
    let title = visit.words.page(title).into();
    Card { title, kind: "checks", tone, lines, ..Card::default() }
}

/// Whether the server accepts requests.
fn ready(visit: &Visit<'_>, report: &HealthReport) -> Card {
    let words = visit.words;
    let line = match report.reason {
        None => Line { tone: "good", text: words.page("health_is_ready").into(), ..Line::default() },
        Some(reason) => Line {
            tone: "bad",
            text: words.page(&format!("health_{reason}")).into(),
            sub: words.page(&format!("health_{reason}_mend")).into(),
            ..Line::default()
        },
    };
    let warnings = report.warnings.keys().map(|job| Line {
        tone: "warn",
        text: words.page(&format!("health_warning_{job}")).into(),
        sub: words.page(&format!("health_warning_{job}_mend")).into(),
        ..Line::default()
    });
    card(visit, "health_ready", std::iter::once(line).chain(warnings).collect())
}

fn job_line(visit: &Visit<'_>, job: &JobState) -> Line {
    let (words, now) = (visit.words, visit.now.0);
    let text = words.page(&format!("job_{}", job.name)).to_owned();
    let rest = i64::try_from(job.rest.as_millis()).unwrap_or(i64::MAX);
    let patience = rest.saturating_mul(LATE_AFTER_RESTS).max(AT_LEAST_MS);
    let page = JOB_PAGES.iter().find(|(name, _)| *name == job.name).map(|(_, href)| (*href).to_owned());
    let is_late = |last: Timestamp| now - last.0 > patience;
    let (tone, sub, iso) = match (&job.failed, job.succeeded_on) {
        (Some((when, why)), _) => ("bad", why.clone(), rfc3339(*when)),
        (None, _) if job.runs_on_other_process => ("", words.page("job_elsewhere").to_owned(), String::new()),
        (None, None) => ("", words.page("job_not_yet").to_owned(), String::new()),
        (None, Some(last)) if is_late(last) => ("warn", words.page("job_late").to_owned(), rfc3339(last)),
        (None, Some(last)) => ("good", words.page("job_done").to_owned(), rfc3339(last)),
    };
    let is_wrong = matches!(tone, "bad" | "warn");
    let href = page.filter(|_| is_wrong);
    let sub = if is_wrong && href.is_none() { format!("{} {sub}", words.page("job_mend")) } else { sub };
    Line { tone, text, sub, href, iso, ..Line::default() }
}

fn figure_line(
    visit: &Visit<'_>,
    report: &HealthReport,
    name: &str,
    threshold: Threshold,
    href: &str,
) -> Option<Line> {
    let (words, value) = (visit.words, *report.figures.get(name)?);
    let label = words.page(&format!("figure_{name}")).to_owned();
    let (tone, text, iso) = match threshold {
        Threshold::Informational => ("", format!("{label}: {value}"), String::new()),
        Threshold::AtLeast(many) => {
            (if value >= many { "warn" } else { "good" }, format!("{label}: {value}"), String::new())
        }
        Threshold::Expiry if value == 0 => {
            ("good", format!("{label}: {}", words.page("figure_never")), String::new())
        }
        Threshold::Expiry => {
            let tone = match value - visit.now.0 {
                left if left <= 0 => "bad",
                left if left <= SOON_MS => "warn",
                _ => "good",
            };
            (tone, label, rfc3339(Timestamp(value)))
        }
    };
    let is_wrong = matches!(tone, "bad" | "warn");
    let sub = if is_wrong { words.page(&format!("figure_{name}_mend")).to_owned() } else { String::new() };
    let href = Some(href.to_owned()).filter(|href| !href.is_empty());
    Some(Line { tone, text, sub, href, iso, ..Line::default() })
}
