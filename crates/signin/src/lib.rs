//! The OpenID provider: sign-ins in progress, sessions, codes and grants.
//!
//! `chancery_flow` decides the next step of a sign-in; `chancery_oauth` parses and validates requests. This crate
//! reads the data that both need from the database and writes the results. HTTP is handled by `chancery_web`.

mod access_pass;
mod acr;
mod action;
mod advance;
mod after_post;
mod appearance;
mod application;
mod audience;
mod authorization_response;
mod authorize;
mod choose;
mod claim_scope;
mod claims;
mod code;
mod confirm;
mod consent;
mod console;
mod console_path;
mod counts;
mod demands;
mod device;
mod device_code;
mod device_grant;
mod device_page;
mod end_session;
mod external;
mod external_claims;
mod facts;
mod flow_client;
mod flow_context;
mod grant;
mod grant_expiry;
mod granted;
mod issuance;
mod logout;
mod new_password;
mod open_questions;
mod own;
mod page;
mod page_name;
mod passkey;
mod password;
mod pending_flow;
mod people;
mod person;
mod person_context;
mod prepare;
mod preview;
mod provider;
mod questionnaire;
mod record;
mod redeem;
mod refresh;
mod refresh_token;
mod refresh_token_endpoints;
mod refused_requests;
mod registered;
mod requested;
mod reset;
mod response;
mod rules_in_force;
mod second_factor;
mod second_factor_page;
mod session;
mod show;
mod sign_in_transaction;
mod step;
mod tokens;
mod userinfo;

pub use access_pass::AccessPassForm;
pub use acr::{ACR, is_at_least};
pub use action::PageAction;
pub use appearance::{Appearance, Appearances, Asset, Owners};
pub use application::Applications;
pub use authorize::LONGEST_QUERY;
pub use chancery_management::idp_instance::connection::Documents as ProviderDocuments;
pub use chancery_oauth::STANDARD_SCOPES;
pub use choose::GivenConsent;
pub use claim_scope::{person_claims, platform_claims};
pub use confirm::Confirmation;
pub use console::{
    ConsoleEntry, ConsoleLifetimes, ConsolePreference, ConsoleSession, USE_MS as CONSOLE_USE_MS,
    console_digest, console_names, console_preference, end_console_session, find_console_session,
    is_setup_open, note_console_use, open_setup, spend_setup, store_console_preference,
};
pub use console_path::CONSOLE_RETURN;
pub use counts::Counts;
pub use device_grant::{DevicePolls, GRANT_TYPE as DEVICE_CODE};
pub use device_page::enter_page;
pub use end_session::{SignOutResponse, SignOutResult, SignedOut};
pub use external::flow_of_state;
pub use logout::SignOutDeliveries;
pub use new_password::NewPassword;
pub use own::{OwnEnd, OwnSession, OwnUser, end_own_sessions, own_sessions, own_user, platform_user};
pub use page_name::{
    ACCESS_PASS, CHOOSE, CONFIRM, CONSENT, CONTINUE, DEVICE, ENROL, EXTERNAL, NEW_PASSWORD, PASSKEY,
    PASSWORD, QUESTIONNAIRE, RECOVERY, REFUSED, SECOND_FACTOR, SIGN_OUT, SIGNED_OUT, TERMS,
};
pub use password::{Credentials, LONGEST as LONGEST_SECRET};
pub use pending_flow::{IN_ROW, PendingFlow};
pub use preview::preview_tokens;
pub use provider::{Provider, Visit};
pub use questionnaire::item_of;
pub use record::Origin;
pub use redeem::GRANT_TYPE as AUTHORIZATION_CODE;
pub use refresh::GRANT_TYPE as REFRESH_TOKEN;
pub use refresh_token_endpoints::shows_refresh_token;
pub use refused_requests::{RefusedKind, RefusedRequest, RefusedRequests, write_refused};
pub use registered::Registered;
pub use reset::{RESET, RESET_PATH, ResetLink, ResetRequest, ResetScope, reset_page};
pub use response::{AttemptResult, BrowserResponse, NewSession, Page, PageError};
pub use userinfo::{LACKS_OPENID, UserInfoRefusal};
