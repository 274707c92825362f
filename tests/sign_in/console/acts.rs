//! Rendered forms contain everything that their operations require.

use std::collections::BTreeSet;

use chancery_resource::{Action, Body, Custom, Method, Op, Permit};
use chancery_testkit::on_both_engines;
use serde_json::json;

use super::{
    administrator,
    rights::{attribute, kind, walk},
};

/// The fields that a browser submits of an untouched form.
fn as_shown(form: &str) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut is_chosen = true;
    for element in form.split('<').skip(1) {
        let is = |name: &str| element.starts_with(&format!("{name} "));
        let named = attribute(element, "name");
        let value = attribute(element, "value").unwrap_or_default();
        match named {
            Some(name) if is("input") => {
                let kind = attribute(element, "type").unwrap_or_default();
                let is_sent = match kind.as_str() {
                    "checkbox" | "radio" => element.contains(" checked"),
                    kind => kind != "file",
                };
                fields.extend(is_sent.then_some((name, value)));
            }
            Some(name) if is("select") => {
                fields.push((name, String::new()));
                is_chosen = false;
            }
            Some(name) if is("textarea") => {
                let text = element.split_once('>').map_or("", |(_, text)| text);
                fields.push((name, super::unescaped(text.trim_start_matches('\n'))));
            }
            // browsers select the first option if none is selected
            None if is("option") && (element.contains(" selected") || !is_chosen) => {
                fields.last_mut().unwrap().1 = value;
                is_chosen = true;
            }
            _ => {}
        }
    }
    fields
}

/// The anchors that an error summary links to and that the page lacks.
fn missing_anchors(html: &str) -> Vec<String> {
    let Some(problems) = html.split("<div class=\"problems\"").nth(1) else { return Vec::new() };
    let problems = problems.split("</div>").next().unwrap();
    let anchors = problems.split("href=\"#").skip(1).map(|rest| rest.split('"').next().unwrap());
    anchors.filter(|anchor| !html.contains(&format!("id=\"{anchor}\""))).map(str::to_owned).collect()
}

/// The operations on one row with a standard page.
fn acts() -> impl Iterator<Item = &'static Op> {
    let services = [&chancery_userstore::SERVICE, &chancery_management::SERVICE];
    let is_act = |op: &&Op| {
        let has_form = match op.action {
            Action::Custom(Custom { body, .. }) => matches!(body, Body::None | Body::Form(_)),
            Action::ReplaceMembers(_) => true,
            _ => false,
        };
        let is_about_one = op.path.matches('{').count() == 1;
        has_form
            && is_about_one
            && op.permit != Permit::Public
            && [Method::Post, Method::Put].contains(&op.method)
    };
    services.into_iter().flat_map(chancery_resource::Service::all).filter(is_act)
}

/// The operations without a standard page, or without a row here that links to it, with the reason.
const EXCUSED: &[(&str, &str)] = &[
    ("RestoreUserDeletionQuarantine", "is of what was deleted"),
    ("SendPasswordResetEmail", "leads to the mail server's settings where there is none"),
    ("CreateSecurityContact", "is the form of a list of what a user owns"),
    ("StartPasskeyRegistration", "is of a browser and its authenticator"),
    ("ApproveRecovery", "is a button of the recovery's page"),
    ("CompleteRecovery", "as above"),
    ("CancelRecovery", "as above"),
    ("ResumeScimToken", "is of a token that was stopped"),
    ("StartIdpInstanceTrial", "is a page of its own"),
    ("CompleteIdpInstanceTrial", "as above"),
    ("ConfirmIdpInstanceSettings", "is of an external provider"),
    ("PreviewTokens", "is a page of its own"),
    ("Approve", "is a button of the replacement's page"),
    ("ProveReplacementIdentity", "as above"),
    ("Execute", "as above"),
    ("Cancel", "as above"),
];

on_both_engines! {
    /// Every form, submitted as rendered, succeeds or reports errors at its own fields. No error is about a field that
    /// the form lacks.
    async fn every_form_contains_the_fields_that_its_operation_requires(world: World) {
        let mut browser = administrator(&world).await;
        crate::sign_in::create_sign_in_data(&world).await;
        let subscription = world.all("Subscription").await[0]["id"].clone();
        let receiver = json!({ "name": "receiver", "url": "https://receiver.example/events" });
        world.admin.post(&world.path("/EventSubscription"), receiver.clone()).await.expect(201);
        let mut of_configuration = receiver;
        of_configuration["subscriptionId"] = subscription;
        world.make("EventSubscription", of_configuration).await;
        let mut wrong = Vec::new();
        let walked = walk(&mut browser, ("SystemAdmin", "/console"), |_| true, &mut wrong).await;
        let (mut sent, mut seen) = (BTreeSet::new(), BTreeSet::new());
        // the end of the session would end the test, and a user without an image cannot delete it
        let left_out = ["/SignOutApplicationUser", "/DeleteUserImage"];
        for address in walked.keys() {
            seen.extend(address.split(['/', '?']).map(str::to_owned));
            if left_out.iter().any(|end| address.ends_with(end)) {
                continue;
            }
            let page = browser.open(address).await;
            for form in page.html.split("<form ").skip(1).filter(|form| form.contains("data-edit")) {
                let form = form.split("</form>").next().unwrap();
                let Some(action) = attribute(form, "action").filter(|action| sent.insert(kind(action))) else { continue };
                let fields = as_shown(form);
                let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let answer = browser.post(&action, &fields, &[("origin", &world.base)]).await;
                let missing = missing_anchors(&answer.html);
                if !missing.is_empty() || ![200, 400, 409].contains(&answer.status) {
                    wrong.push(format!("{action}: {} {missing:?}", answer.status));
                }
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
        let is_excused = |name: &str| EXCUSED.iter().any(|(excused, _)| *excused == name);
        let unseen: Vec<&str> = acts().map(|op| op.name).filter(|name| !seen.contains(*name) && !is_excused(name)).collect();
        assert!(unseen.is_empty(), "no page leads to {unseen:?}");
    }
}
