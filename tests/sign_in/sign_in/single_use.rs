//! No code and no refresh token is accepted twice, at whichever process (sections 5, 18 and 22).

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use chancery_testkit::{Answer, Client, World, on_both_engines};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    PASSWORD, SignInApp,
    browser::{Browser, Page},
    fleet::{Fleet, RandomNumbers},
    parameter,
    second_factor::{between, code_of, enrol, require_factor},
    tenant_option,
};

const CLIENTS: usize = 64;
/// This many wrong codes of a person do not lock yet.
const FORGERS: usize = 4;
const OFFLINE: (&str, &str) = ("scope", "openid profile offline_access");

/// A public app, whose refresh tokens are replaced at each use, with a browser that is signed in.
async fn public(world: &World) -> (SignInApp, Browser) {
    let home = SignInApp::with(world, json!({ "isPublic": true })).await;
    let mut browser = Browser::new(world);
    let page = browser.open(&home.request(&[OFFLINE])).await;
    browser.sign_in(&page, "ann", PASSWORD).await;
    (home, browser)
}

/// This many codes, each for a grant of its own.
async fn codes(home: &SignInApp, browser: &mut Browser, count: usize) -> Vec<String> {
    let mut codes = Vec::new();
    for _ in 0..count {
        let left = browser.open(&home.request(&[OFFLINE])).await.left.unwrap();
        codes.push(parameter(&left, "code").unwrap());
    }
    codes
}

async fn grants(world: &World, home: &SignInApp, browser: &mut Browser, count: usize) -> Vec<Value> {
    let mut grants = Vec::new();
    for code in codes(home, browser, count).await {
        grants.push(home.redeem(world, &code, &[]).await.is(200).json());
    }
    grants
}

/// The tokens of a response; `None` if it is a refusal.
#[track_caller]
fn tokens(answer: Answer) -> Option<Value> {
    if answer.status == 200 {
        return Some(answer.json());
    }
    assert_eq!(answer.is(400).json()["error"], json!("invalid_grant"));
    None
}

fn refresh_token(tokens: &Value) -> String {
    tokens["refresh_token"].as_str().unwrap().to_owned()
}

/// Whether this process accepts an access token.
async fn is_accepted(caller: &Client, tokens: &Value) -> bool {
    let bearer = caller.with_token(tokens["access_token"].as_str().unwrap());
    bearer.get("/connect/userinfo").await.status == 200
}

/// Responses that clients got for one grant.
#[derive(Default)]
struct History {
    /// Its refresh tokens, by generation.
    generations: Vec<String>,
    /// All issued tokens.
    answered: Vec<Value>,
    /// The generation of the refresh token of each refusal.
    refused: Vec<usize>,
    /// Time of the first refusal.
    ended: Option<u64>,
}

fn lock(history: &Mutex<History>) -> MutexGuard<'_, History> {
    history.lock().unwrap_or_else(PoisonError::into_inner)
}

impl History {
    /// Records the result of a request that began at this time: each generation has one successor, and a request that began
    /// after the grant had ended gets no tokens.
    fn note(&mut self, generation: usize, (began, ended): (u64, u64), tokens: Option<Value>) {
        let Some(tokens) = tokens else {
            self.refused.push(generation);
            self.ended = Some(self.ended.map_or(ended, |before| before.min(ended)));
            return;
        };
        assert!(self.ended.is_none_or(|over| began < over), "the grant had ended before");
        let successor = refresh_token(&tokens);
        if self.generations.len() == generation + 1 {
            assert!(!self.generations.contains(&successor));
            self.generations.push(successor);
        } else {
            assert_eq!(self.generations[generation + 1], successor, "one successor of each generation");
        }
        self.answered.push(tokens);
    }

    /// Whether the model explains a refusal: a token at least two generations old was used.
    fn was_reused(&self) -> bool {
        self.refused.iter().any(|generation| self.generations.len() > generation + 2)
    }
}

/// Browsers after Ann's password, round robin at the processes, at the page for a code.
async fn code_pages(home: &SignInApp, fleet: &Fleet) -> Vec<(Browser, Page)> {
    let pages = (0..FORGERS).map(|number| async move {
        let mut browser = fleet.browser(number);
        let page = browser.open(&home.request(&[])).await;
        let page = browser.type_password(&page, "ann", PASSWORD).await;
        (browser, page)
    });
    join_all(pages).await
}

/// Submits this in all browsers at once; returns the number of accepted ones.
async fn accepted_count(pages: Vec<(Browser, Page)>, shown: &[(&str, &str)]) -> usize {
    let shown = pages.into_iter().map(|(mut browser, page)| async move {
        let next = browser.submit(&page, shown).await;
        // an accepted browser continues to the app
        next.html.contains("http-equiv") || next.answer.header("refresh").is_some()
    });
    join_all(shown).await.into_iter().filter(|is_in| *is_in).count()
}

on_both_engines! {
    /// Sections 13 and 22: of concurrent submissions of an authenticator code, or a recovery code, at all processes,
    /// one is accepted.
    async fn a_second_factor_code_is_accepted_once(world: World) {
        let home = SignInApp::new(&world).await;
        require_factor(&world, &home, "totp").await;
        world.set_option("LoginThrottlingEnabled", "false").await;
        world.set_option("TemporaryLockEnabled", "false").await;
        let (secret, recovery, _) = enrol(&world, &home).await;
        let fleet = Fleet::of(&world);
        let browsers = code_pages(&home, &fleet).await;
        assert_eq!(accepted_count(browsers, &[("code", &code_of(&secret, 1))]).await, 1);
        for code in &recovery[..3] {
            let mut browsers = code_pages(&home, &fleet).await;
            for (browser, page) in &mut browsers {
                let choice = format!("recovery:{}", between(&page.html, "value=\"recovery:", "\""));
                *page = browser.submit(page, &[("choice", &choice)]).await;
            }
            assert_eq!(accepted_count(browsers, &[("code", code)]).await, 1, "{code}");
        }
    }

    /// Sections 5 and 22: of concurrent redemptions of a code at all processes one gets tokens; after a second use
    /// these are revoked.
    async fn a_code_is_redeemed_once_across_processes(world: World) {
        const CONTESTED: usize = 16;
        let (home, mut browser) = public(&world).await;
        let fleet = Fleet::of(&world);
        let codes = codes(&home, &mut browser, CONTESTED + 4).await;
        let clients = (0..CLIENTS).map(|client| {
            let (home, fleet, codes) = (&home, &fleet, &codes);
            async move {
                let mut dice = RandomNumbers(client as u64);
                let mut got = Vec::new();
                for _ in 0..4 {
                    let code = dice.below(CONTESTED);
                    got.push((code, tokens(home.redeem_at(fleet.caller(dice.below(2)), &codes[code], &[]).await)));
                }
                // codes that are used by one client only
                if let Some(own) = codes.get(CONTESTED + client) {
                    got.push((CONTESTED + client, tokens(home.redeem_at(fleet.caller(client), own, &[]).await)));
                }
                got
            }
        });
        let history: Vec<(usize, Option<Value>)> = join_all(clients).await.concat();
        for (code, text) in codes.iter().enumerate() {
            let shown = history.iter().filter(|(one, _)| *one == code);
            let got: Vec<&Value> = shown.clone().filter_map(|(_, tokens)| tokens.as_ref()).collect();
            assert_eq!(got.len(), 1, "the code {code} was shown {} times", shown.count());
            let is_own = code >= CONTESTED;
            for caller in fleet.callers() {
                assert_eq!(is_accepted(caller, got[0]).await, is_own, "code {code}");
            }
            if !is_own {
                for caller in fleet.callers() {
                    assert!(tokens(home.refresh_at(caller, &refresh_token(got[0])).await).is_none());
                    assert!(tokens(home.redeem_at(caller, text, &[]).await).is_none());
                }
            }
        }
    }

    /// Section 5: all who use the same refresh token within the leeway get the same successor, generation by
    /// generation, and nobody is refused.
    async fn concurrent_refreshes_get_the_same_successor(world: World) {
        let (home, mut browser) = public(&world).await;
        let fleet = Fleet::of(&world);
        let mut newest: Vec<String> = grants(&world, &home, &mut browser, 8).await.iter().map(refresh_token).collect();
        let mut seen: Vec<String> = newest.clone();
        for _ in 0..4 {
            let shown = (0..CLIENTS).map(|client| home.refresh_at(fleet.caller(client / newest.len()), &newest[client % newest.len()]));
            let answers: Vec<String> =
                join_all(shown).await.into_iter().map(|answer| refresh_token(&answer.is(200).json())).collect();
            for (client, successor) in answers.iter().enumerate() {
                assert_eq!(*successor, answers[client % newest.len()], "one successor");
            }
            newest = answers[..newest.len()].to_vec();
            seen.extend_from_slice(&newest);
        }
        seen.sort();
        let count = seen.len();
        seen.dedup();
        assert_eq!(seen.len(), count, "no two generations of any grants are the same");
    }

    /// Section 22: 64 clients lose responses and try again, at different times; their responses are those that one
    /// process could have given to the same requests in sequence.
    async fn refresh_token_rotation_is_linearizable(world: World) {
        let (home, mut browser) = public(&world).await;
        let fleet = Fleet::of(&world);
        let histories: Vec<Mutex<History>> = grants(&world, &home, &mut browser, 24)
            .await
            .into_iter()
            .map(|first| {
                let generations = vec![refresh_token(&first)];
                Mutex::new(History { generations, answered: vec![first], ..History::default() })
            })
            .collect();
        let clock = AtomicU64::new(0);
        let tick = || clock.fetch_add(1, Ordering::SeqCst);
        let clients = (0..CLIENTS).map(|client| {
            let (home, fleet, histories, tick) = (&home, &fleet, &histories, &tick);
            async move {
                let mut dice = RandomNumbers(1_000 + client as u64);
                for _ in 0..6 {
                    let history = &histories[dice.below(histories.len())];
                    let (generation, token) = {
                        let known = lock(history);
                        // one in four loses the response, and sends the previous token again
                        let lost = usize::from(dice.below(4) == 0);
                        let generation = (known.generations.len() - 1).saturating_sub(lost);
                        (generation, known.generations[generation].clone())
                    };
                    let began = tick();
                    let answer = home.refresh_at(fleet.caller(dice.below(2)), &token).await;
                    lock(history).note(generation, (began, tick()), tokens(answer));
                }
            }
        });
        join_all(clients).await;
        let (mut ended, mut living) = (0, 0);
        for history in histories {
            let history = history.into_inner().unwrap_or_else(PoisonError::into_inner);
            let is_over = history.ended.is_some();
            assert_eq!(is_over, history.was_reused(), "who shows what is not too old is turned away by nothing");
            if is_over { ended += 1 } else { living += 1 }
            let newest = history.generations.last().unwrap();
            for caller in fleet.callers() {
                for one in &history.answered {
                    assert_eq!(is_accepted(caller, one).await, !is_over);
                }
                // twice the same: the second is within the leeway
                assert_eq!(tokens(home.refresh_at(caller, newest).await).is_some(), !is_over);
            }
        }
        assert!(living > 0, "{ended} ended");
    }

    /// Section 5: without leeway an older token ends the grant, also if all use it at once; after that nothing of
    /// the grant is accepted at any process.
    ///
    /// - Effect of `Tenant options.RefreshTokenReuseLeeway`: A refresh token that was replaced is accepted for this time, so that
    ///   concurrent requests succeed.
    async fn without_leeway_reuse_ends_the_grant(world: World) {
        let (home, mut browser) = public(&world).await;
        tenant_option(&world, &home, "RefreshTokenReuseLeeway", "00:00:00").await;
        let fleet = Fleet::of(&world);
        let grants = grants(&world, &home, &mut browser, 8).await;
        let shown = (0..CLIENTS).map(|client| {
            home.refresh_at(fleet.caller(client / grants.len()), grants[client % grants.len()]["refresh_token"].as_str().unwrap())
        });
        let answers: Vec<Option<Value>> = join_all(shown).await.into_iter().map(tokens).collect();
        for (number, first) in grants.iter().enumerate() {
            let of_grant = answers.iter().skip(number).step_by(grants.len());
            let got: Vec<&Value> = of_grant.flatten().collect();
            assert_eq!(got.len(), 1, "one rotation of grant {number}");
            for caller in fleet.callers() {
                for dead in [first, got[0]] {
                    assert!(!is_accepted(caller, dead).await);
                    assert!(tokens(home.refresh_at(caller, &refresh_token(dead)).await).is_none());
                }
            }
        }
    }
}
