//! After a rotation of the master key, stored data of sign-ins is encrypted again under the first key.

use chancery::reseal;
use chancery_record::Value as Bound;
use chancery_resource::MasterKey;
use chancery_store::{Class, Error, Mode};
use chancery_testkit::{World, on_both_engines};

use super::{
    PASSWORD, SignInApp,
    browser::Browser,
    parameter,
    second_factor::{enrol, require_factor},
};
use crate::{id, signing::set_mail_server};

/// Binary columns. Text, such as the secrets of options, contains the id of the key in base64.
const COLUMNS: [(&str, &str); 5] = [
    ("user_account", "audit_key"),
    ("application_user", "audit_key"),
    ("second_factor", "sealed"),
    ("sign_in_grant", "sealed"),
    ("mail_message", "sealed_data"),
];

/// Number of values of a column that the first key of a master key encrypted.
async fn encrypted(world: &World, key: &MasterKey, (table, column): (&str, &str)) -> i64 {
    let id = [Bound::Bytes(key.seal("", b"")[..4].to_vec())];
    let text = format!("SELECT count(*) FROM {table} WHERE substr({column}, 1, 4) = ?1");
    let read = world.app.store.run("Test", Mode::Long, None, move |tx| {
        Ok::<_, Error>(tx.one(&text, &id, |row| row.int(0))?.unwrap_or(0))
    });
    read.await.unwrap()
}

on_both_engines! {
    /// All values of the old key are re-encrypted under the new one, and a second run finds none.
    async fn rotation_reencrypts_sign_in_data_under_the_first_key(world: World) {
        let home = SignInApp::new(&world).await;
        let mut browser = Browser::new(&world);
        let page = browser.open(&home.request(&[("scope", "openid offline_access")])).await;
        let answer = browser.sign_in(&page, "ann", PASSWORD).await;
        home.redeem(&world, &parameter(&answer, "code").unwrap(), &[]).await.expect(200);
        require_factor(&world, &home, "totp").await;
        enrol(&world, &home).await;
        set_mail_server(&world.admin).await;
        let reset = world.path(&format!("/User/{}/password/reset/request", id(&home.user)));
        world.admin.send(http::Method::POST, &reset, &[], Vec::new()).await.expect(200);

        let old = world.app.context.master.clone();
        let new = old.rotated().unwrap();
        let mut before = Vec::new();
        for column in COLUMNS {
            let count = encrypted(&world, &old, column).await;
            assert!(count > 0, "{column:?}");
            before.push(count);
        }
        let store = world.app.store.with(Class::Background);
        let (renewed, unknown) = reseal(&store, &new, &|_, _| ()).await.unwrap();
        let all: i64 = before.iter().sum();
        assert!(unknown == 0 && i64::try_from(renewed).unwrap() > all, "{renewed} of {all}, with secrets of options; {unknown}");
        for (column, count) in COLUMNS.into_iter().zip(before) {
            assert_eq!(encrypted(&world, &old, column).await, 0, "{column:?}");
            assert_eq!(encrypted(&world, &new, column).await, count, "{column:?}");
        }
        assert_eq!(reseal(&store, &new, &|_, _| ()).await, Ok((0, 0)));
        let (renewed, unknown) = reseal(&store, &MasterKey::generate(), &|_, _| ()).await.unwrap();
        assert!(renewed == 0 && i64::try_from(unknown).unwrap() > all, "values of no key of the file are told");
    }
}
