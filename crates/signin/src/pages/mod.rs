//! The pages of a sign-in: a file for each has its view and its post.

pub mod access_pass;
pub mod choose;
pub mod device;
pub mod new_password;
mod passkey;
pub mod password;
mod prepare;
pub mod questionnaire;
pub mod required_action;
pub mod reset;
pub mod second_factor;
mod second_factor_view;
mod show;
mod view;
