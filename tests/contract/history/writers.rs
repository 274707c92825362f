//! Those who change users, and remember what was answered to them.

use std::{sync::Arc, time::Duration};

use chancery_testkit::{Answer, Client};
use http::Method;
use serde_json::{Value as Json, json};
use tokio::sync::{mpsc, watch};

use super::STORE;
use crate::sign_in::fleet::Dice;

/// What a writer knows of a user: the words of the changes that were answered, and of one whose answer was lost.
#[derive(Debug, Default)]
pub struct Subject {
    pub id: String,
    pub answered: Vec<&'static str>,
    pub lost: Option<&'static str>,
}

/// What a writer knows in the end.
#[derive(Default)]
pub struct Told {
    pub subjects: Vec<Subject>,
    /// The ids of users whose creation was refused.
    pub refused: Vec<String>,
}

/// Where the servers are, as they are started anew.
pub type Callers = Arc<Vec<watch::Sender<Client>>>;

struct Writer {
    number: usize,
    callers: Callers,
    tell: mpsc::Sender<()>,
    dice: Dice,
    told: Told,
}

impl Writer {
    /// An id that nobody else brings.
    fn id(&self, turn: usize, kind: usize) -> String {
        format!("0192f0c1-{:04x}-7000-800{kind}-{turn:012x}", self.number)
    }

    async fn send(&self, method: Method, path: &str, body: &Json) -> Option<Answer> {
        let client = self.callers[self.number % self.callers.len()].borrow().clone();
        let headers = [("content-type", "application/json")];
        let bytes = if method == Method::DELETE { Vec::new() } else { body.to_string().into_bytes() };
        let answer = client.try_send(method, &format!("{STORE}{path}"), &headers, bytes).await?;
        // a server whose database went away does not know either
        (answer.status != 503).then_some(answer)
    }

    /// Sends a change; what was answered. What is lost is the last that the subject gets.
    async fn change(
        &self,
        subject: &mut Subject,
        what: &'static str,
        (method, path, body): (Method, &str, Json),
    ) -> Option<Answer> {
        let answer = self.send(method, path, &body).await;
        match &answer {
            Some(answer) => {
                assert!(answer.status.is_success(), "{}", String::from_utf8_lossy(&answer.bytes));
                subject.answered.push(what);
                let _ = self.tell.try_send(());
            }
            None => subject.lost = Some(what),
        }
        answer
    }

    /// A user from the creation to the deletion, or to the first answer that is lost.
    async fn live(&mut self, turn: usize, subject: &mut Subject) -> Option<()> {
        let name = format!("w{}x{turn}", self.number);
        let body = json!({ "id": subject.id, "loginName": name });
        let made = self.change(subject, "created", (Method::POST, "/User", body.clone())).await?;
        let (one, mut row) = (format!("/User/{}", subject.id), made.json());
        for step in 0..=self.dice.below(4) {
            let patch =
                json!({ "firstName": format!("n{step}"), "concurrencyToken": row["concurrencyToken"] });
            row = self.change(subject, "updated", (Method::PATCH, &one, patch.clone())).await?.json();
            if self.dice.below(4) == 0 {
                // the token is one of before
                let refused = self.send(Method::PATCH, &one, &patch).await;
                assert!(refused.is_none_or(|answer| answer.status == 409));
            }
        }
        if self.dice.below(4) == 0 {
            let twice = self.id(turn, 1);
            let body = json!({ "id": twice, "loginName": name });
            if let Some(answer) = self.send(Method::POST, "/User", &body).await {
                assert_eq!(answer.status, 409);
                self.told.refused.push(twice);
            }
        }
        if self.dice.below(3) == 0 {
            self.change(subject, "deleted", (Method::DELETE, &one, json!(null))).await?;
        }
        Some(())
    }
}

/// Makes, changes and deletes users until the end.
pub async fn write(
    number: usize,
    callers: Callers,
    tell: mpsc::Sender<()>,
    stopped: watch::Receiver<bool>,
) -> Told {
    let mut writer = Writer { number, callers, tell, dice: Dice(number as u64), told: Told::default() };
    let mut turn = 0;
    while !*stopped.borrow() {
        turn += 1;
        let mut subject = Subject { id: writer.id(turn, 0), ..Subject::default() };
        let is_done = writer.live(turn, &mut subject).await.is_some();
        writer.told.subjects.push(subject);
        if !is_done {
            // the server is being started again
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    writer.told
}
