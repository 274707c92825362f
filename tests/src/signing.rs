//! Shared helpers of the tests about users who sign in.

use std::{borrow::Cow, path::Path};

use chancery_record::Value as Bound;
use chancery_resource::read_text;
use chancery_store::{Error, Mode};
use chancery_testkit::{Answer, Client, World};
use serde_json::{Value, json};

use crate::{each, encode, id};

/// The first password of a person.
pub const FIRST: &str = "four lively grey herons";
/// Another good one.
pub const SECOND: &str = "seven quiet blue otters";

const OPTIONS: &str = "/api/management/v2/Option";

/// The option of the default store with this name: the oldest.
pub async fn option(client: &Client, name: &str) -> Value {
    let filter = encode(&format!("name eq \"{name}\" and applyToIdpInstanceId pr"));
    let options = client.get(&format!("{OPTIONS}?filter={filter}")).await.is(200).json();
    assert!(!options[0].is_null(), "{name}: {options}");
    options[0].clone()
}

/// Deletes an option of an instance, which falls to its default.
pub async fn drop_option(world: &World, instance: impl std::fmt::Display, name: &str) {
    let filter = encode(&format!("name eq \"{name}\" and applyToIdpInstanceId eq \"{instance}\""));
    let options = world.admin.get(&format!("{OPTIONS}?filter={filter}")).await.is(200).json();
    world.admin.delete(&format!("{OPTIONS}/{}", id(&options[0]))).await.expect(204);
}

/// Sets an option of the default store.
pub async fn set(client: &Client, name: &str, value: &str) -> Value {
    let option = option(client, name).await;
    let patch = json!({ "value": value, "concurrencyToken": option["concurrencyToken"] });
    client.patch(&format!("{OPTIONS}/{}", id(&option)), patch).await.is(202).json()
}

/// Sets several options of the default store.
pub async fn set_all(client: &Client, options: &[(&str, &str)]) {
    for (name, value) in options {
        set(client, name, value).await;
    }
}

/// A user of the default store, with the operations on it.
pub struct Person<'a> {
    world: &'a World,
    /// The user's id.
    pub id: String,
    /// The user's path.
    pub path: String,
}

impl<'a> Person<'a> {
    /// A new user without a password.
    pub async fn new(world: &'a World, body: Value) -> Self {
        let user = world.admin.post(&world.path("/User"), body).await.is(201).json();
        Self { world, id: id(&user).to_owned(), path: world.path(&format!("/User/{}", id(&user))) }
    }

    /// A new user whose password is [`FIRST`].
    pub async fn named(world: &'a World, login_name: &str) -> Self {
        let person = Self::new(world, json!({ "loginName": login_name })).await;
        person.reset(FIRST).await.expect(200);
        person
    }

    /// POST below the user's path.
    pub async fn post(&self, rest: &str, body: Value) -> Answer {
        self.world.admin.post(&format!("{}/{rest}", self.path), body).await
    }

    /// POST below the user's path, without a body.
    pub async fn call(&self, rest: &str) -> Answer {
        self.world.admin.send(http::Method::POST, &format!("{}/{rest}", self.path), &[], Vec::new()).await
    }

    /// Reads the user.
    pub async fn read(&self) -> Value {
        self.world.admin.get(&self.path).await.is(200).json()
    }

    /// Changes members of the user.
    pub async fn patch(&self, mut patch: Value) -> Value {
        patch["concurrencyToken"] = self.read().await["concurrencyToken"].clone();
        self.world.admin.patch(&self.path, patch).await.is(202).json()
    }

    /// Sets an initial password.
    pub async fn initial(&self, password: &str) -> Answer {
        self.post("password/initial", json!({ "password": password })).await
    }

    /// Resets the password as an administrator.
    pub async fn reset(&self, password: &str) -> Answer {
        self.post("password/reset", json!({ "newPassword": password })).await
    }

    /// Changes the password.
    pub async fn change(&self, old: &str, new: &str) -> Answer {
        self.post("password/change", json!({ "oldPassword": old, "newPassword": new })).await
    }

    /// Resets the password with a token.
    pub async fn redeem(&self, token: &str, new: &str) -> Answer {
        self.post("password/reset/response", json!({ "token": token, "newPassword": new })).await
    }

    /// A token that resets the password, as it went into the mail.
    pub async fn token(&self) -> String {
        self.call("password/reset/request").await.expect(200);
        let data = mails(self.world).await.pop().unwrap();
        data["token"].as_str().unwrap().to_owned()
    }

    /// Whether this is the password: tested by changing it, and reset by an administrator, which
    /// clears the counters.
    pub async fn has(&self, password: &str) -> bool {
        let status = self.change(password, "the 7th hedge, of the test's own").await.status;
        if status == 200 {
            self.reset(password).await.expect(200);
        }
        status == 200
    }

    /// As if this many milliseconds had passed for the user's locks and delays.
    pub async fn age(&self, milliseconds: i64) {
        let id = self.id.parse::<uuid::Uuid>().unwrap();
        self.world.sql(vec![(
            "UPDATE user_account SET locked_until = locked_until - ?1, throttled_until = throttled_until - ?1, \
             closing_since = closing_since - ?1 WHERE id = ?2",
            vec![Bound::Int(milliseconds), Bound::Id(id)],
        )]).await;
    }

    /// The events of the user: their types, in order, without the common prefix.
    pub async fn events(&self) -> Vec<String> {
        let envelopes = texts(self.world, "SELECT envelope FROM outbox_event ORDER BY id").await;
        let events = envelopes.iter().map(|text| serde_json::from_str::<Value>(text).unwrap());
        let own = events.filter(|event| event["subject"] == self.id.as_str());
        own.map(|event| event["type"].as_str().unwrap().rsplit('.').next().unwrap().to_owned()).collect()
    }

    /// The audit entries of the user, the oldest first.
    pub async fn entries(&self) -> Vec<Value> {
        let filter = encode(&format!("primaryKey eq \"{}\"", self.id));
        let path = self.world.path(&format!("/CustomAuditTrail?filter={filter}"));
        self.world.admin.get(&path).await.is(200).json().as_array().unwrap().clone()
    }
}

/// The counters of a user: towards the permanent lock, towards the temporary one.
pub fn counters(user: &Value) -> (i64, i64) {
    let number = |name: &str| user[name].as_i64().unwrap();
    (number("failedUserLoginAttempts"), number("failedTemporaryLockAttempts"))
}

/// Milliseconds since 1970 of a time in an answer.
pub fn millis(time: &Value) -> i64 {
    chancery_record::parse_timestamp(time.as_str().unwrap()).unwrap().0
}

/// The current time, for values relative to it.
pub fn now() -> i64 {
    chancery_web::now().0
}

/// The first column of a query, decompressed where it is compressed.
pub async fn texts(world: &World, text: &'static str) -> Vec<String> {
    let rows = world.app.store.run("Test", Mode::Long, None, move |tx| {
        let mut rows = Vec::new();
        tx.query(text, &[], |row| {
            let stored = row.text(0)?;
            rows.push(read_text(stored).map_or_else(|| stored.to_owned(), Cow::into_owned));
            Ok(())
        })?;
        Ok::<_, Error>(rows)
    });
    rows.await.unwrap()
}

/// The waiting mails, opened, the newest last.
pub async fn mails(world: &World) -> Vec<Value> {
    let master = world.app.context.master.clone();
    let rows = world.app.store.run("Test", Mode::Long, None, move |tx| {
        let mut mails = Vec::new();
        tx.query("SELECT id, sealed_data, recipient, kind FROM mail_message ORDER BY rid", &[], |row| {
            let opened = master.open(&chancery_mail::associated_data(row.id(0)?), row.bytes(1)?);
            let mut data: Value = serde_json::from_slice(opened.unwrap().expose()).unwrap();
            data["recipient"] = json!(row.text(2)?);
            data["kind"] = json!(row.text(3)?);
            mails.push(data);
            Ok(())
        })?;
        Ok::<_, Error>(mails)
    });
    rows.await.unwrap()
}

/// Lets the store send mail, to a server that does not exist: mail stays in the outbox.
pub async fn set_mail_server(client: &Client) {
    set(client, "MailServerConfig", r#"{"MailType":"SMTP","Host":"127.0.0.1","Port":9}"#).await;
    set(client, "EMailSenderAddress", "id@example.com").await;
}

/// Lets the store queue mail, to a server that does not exist.
pub async fn send_mail(world: &World) {
    world.set_option("MailServerConfig", "{\"Host\":\"127.0.0.1\"}").await;
    world.set_option("EMailSenderAddress", "noreply@example.com").await;
}

/// Arguments of a server that may call this machine: the mail servers of these tests run here.
pub fn calling_this_machine(_: &Path) -> Vec<String> {
    ["--private-destinations", "127.0.0.0/8"].map(str::to_owned).to_vec()
}

/// The pointers of the errors in a body.
pub fn wrong(answer: Answer) -> Vec<String> {
    let problem = answer.problem(400, "invalid-request");
    each(&problem["errors"], "pointer").into_iter().map(str::to_owned).collect()
}
