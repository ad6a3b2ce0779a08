use super::{AddressPolicy, OutboundUrl, UrlError};
use a2a_lambda_rows::each_row;

/// Accepted URLs: their hosts are on the public Internet.
const TAKEN: [&str; 25] = [
    "https://hook.example",
    "https://hook.example/",
    "https://HOOK.Example/Path",
    "https://hook.example:443/",
    "https://hook.example:8443/a/b?c=d&e=%20f",
    "https://hook.example:1",
    "https://hook.example:65535",
    "https://a.b.c.d.e.f.example/x",
    "https://xn--bcher-kva.example/",
    "https://xn--p1b6ci4b4b3a.xn--11b5bs1di/",
    "https://hook-1.example/?",
    "https://1.hook.example/",
    "https://8.8.8.8/",
    "https://8.8.8.8:8443/x",
    "https://[2606:4700::1111]/",
    "https://[2606:4700::1111]:8443/",
    "https://[2001:4860:4860:0:0:0:0:8888]/",
    "https://hook.example/@path",
    "https://hook.example/a:b@c",
    "https://hook.example?at=a@b",
    "https://localhost.example/",
    "https://notlocalhost.com/",
    "https://internal.example.com/",
    "https://127.0.0.1.example/",
    "https://hook.example/http://127.0.0.1/",
];

/// Not an absolute URL in the plain form.
const FORM: &[&str] = &[
    "",
    "hook.example",
    "//hook.example/",
    "https:hook.example",
    "https:/hook.example/",
    "javascript:alert(1)",
    "data:text/plain,x",
    "mailto:a@hook.example",
    "https://hook.example/a b",
    " https://hook.example/",
    "https://hook.example/\n",
    "https://hook.example/\r\nX-Evil: 1",
    "https://hook.example/\t",
    "https://hook.example/\0",
    "https://hook.example/\u{7f}",
    "https://hook\\.example/",
    "https:\\\\hook.example/",
    "https://evil.example\\@hook.example/",
    "https://bücher.example/",
    "https://hook。example/",
    "https://①②⑦.⓪.⓪.①/",
    "https://ⓛocalhost/",
    "https://hook.example/ü",
    "https://hook.example/<x>",
    "https://hook.example/\"",
    "https://{hook}.example/",
    "https://hook.example/\u{202e}",
];

/// Not HTTPS.
const SCHEME: &[&str] = &[
    "http://hook.example/",
    "http://8.8.8.8/",
    "http://127.0.0.1/",
    "http://localhost/",
    "http://169.254.169.254/latest/meta-data/",
    "HTTPS://hook.example/",
    "Https://hook.example/",
    "ftp://hook.example/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
    "ws://hook.example/",
    "wss://hook.example/",
    "ldap://hook.example/",
    "dict://127.0.0.1:11211/stats",
    "unix:///var/run/docker.sock",
    "s3://bucket/key",
    "://hook.example/",
];

/// With a user name or password.
const USER_INFO: &[&str] = &[
    "https://user@hook.example/",
    "https://user:password@hook.example/",
    "https://:@hook.example/",
    "https://@hook.example/",
    "https://hook.example@127.0.0.1/",
    "https://hook.example:443@169.254.169.254/",
    "https://127.0.0.1@hook.example/",
    "https://a@b@hook.example/",
    "https://%40@hook.example/",
    "https://user@[::1]/",
];

/// With a fragment.
const FRAGMENT: &[&str] = &[
    "https://hook.example/#",
    "https://hook.example/#x",
    "https://hook.example#@127.0.0.1/",
    "https://hook.example?a#b",
];

/// A host that is not a domain name or a canonical IP address.
const HOST: &[&str] = &[
    "https://",
    "https:///",
    "https:///hook.example",
    "https://?x",
    "https://.",
    "https://..",
    "https://hook..example/",
    "https://.hook.example/",
    "https://hook.example./",
    "https://localhost./",
    "https://127.0.0.1./",
    "https://169.254.169.254./",
    "https://-hook.example/",
    "https://hook-.example/",
    "https://hook_.example/",
    "https://ho%6fk.example/",
    "https://127%2e0%2e0%2e1/",
    "https://hook*.example/",
    "https://127.1/",
    "https://127.0.1/",
    "https://10.1/",
    "https://2130706433/",
    "https://2852039166/",
    "https://0/",
    "https://0x7f000001/",
    "https://0x7f.0x0.0x0.0x1/",
    "https://0x7f.1/",
    "https://0xa9fea9fe/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://0251.0376.0251.0376/",
    "https://127.0.0.01/",
    "https://127.0.0.256/",
    "https://256.256.256.256/",
    "https://1.2.3.4.5/",
    "https://hook.example.1/",
    "https://[::1/",
    "https://::1/",
    "https://[]/",
    "https://[127.0.0.1]/",
    "https://[hook.example]/",
    "https://[fe80::1%25eth0]/",
    "https://[fe80::1%eth0]/",
    "https://[::ffff:127.0.0.1]x/",
    "https://[v1.hook]/",
    "https://[0:0:0:0:0:0:0:0:1]/",
    "https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example/",
];

/// With an invalid port.
const PORT: &[&str] = &[
    "https://hook.example:/",
    "https://hook.example:0/",
    "https://hook.example:65536/",
    "https://hook.example:99999/",
    "https://hook.example:-1/",
    "https://hook.example:+443/",
    "https://hook.example:80:80/",
    "https://hook.example:0x50/",
    "https://[::1]:/",
    "https://[2606:4700::1111]:70000/",
];

/// A host inside a network.
const NOT_PUBLIC: &[&str] = &[
    "https://localhost/",
    "https://LOCALHOST:8443/",
    "https://hook.localhost/",
    "https://localhost.localdomain/",
    "https://printer.local/",
    "https://metadata/",
    "https://metadata.google.internal/computeMetadata/v1/",
    "https://instance-data.ec2.internal/",
    "https://wiki.corp/",
    "https://nas.home/",
    "https://router.lan/",
    "https://kubernetes.default.svc/api",
    "https://db.shop.svc.cluster.local/",
    "https://router.home.arpa/",
    "https://1.0.0.127.in-addr.arpa/",
    "https://intranet/",
    "https://db.private/",
    "https://127.0.0.1/",
    "https://127.0.0.1:9001/2018-06-01/runtime/invocation/next",
    "https://127.255.255.254/",
    "https://0.0.0.0/",
    "https://0.0.0.0:8080/",
    "https://10.0.0.1/",
    "https://100.64.0.1/",
    "https://100.100.100.200/latest/meta-data/",
    "https://168.63.129.16/",
    "https://169.254.169.254/latest/meta-data/",
    "https://169.254.170.2/v2/credentials",
    "https://169.254.169.123/",
    "https://172.16.0.1/",
    "https://172.31.255.255/",
    "https://192.0.0.192/",
    "https://192.0.2.1/",
    "https://192.88.99.1/",
    "https://192.168.0.1/",
    "https://198.18.0.1/",
    "https://198.51.100.7/",
    "https://203.0.113.7/",
    "https://224.0.0.1/",
    "https://239.255.255.250/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://[::]/",
    "https://[::1]/",
    "https://[::1]:8443/",
    "https://[0:0:0:0:0:0:0:1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::ffff:169.254.169.254]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[::ffff:8.8.8.8]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::127.0.0.1]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[64:ff9b:1::a9fe:a9fe]/",
    "https://[2001::1]/",
    "https://[2001:db8::1]/",
    "https://[2002:7f00:1::]/",
    "https://[2002:a9fe:a9fe::]/",
    "https://[3fff::1]/",
    "https://[fc00::1]/",
    "https://[fd00:ec2::254]/latest/meta-data/",
    "https://[fe80::1]/",
    "https://[fec0::1]/",
    "https://[ff02::1]/",
    "https://[100::1]/",
];

/// All refused URLs, each with its fault.
fn refused() -> Vec<(&'static str, UrlError)> {
    let groups = [
        (UrlError::Form, FORM),
        (UrlError::Scheme, SCHEME),
        (UrlError::UserInfo, USER_INFO),
        (UrlError::Fragment, FRAGMENT),
        (UrlError::Host, HOST),
        (UrlError::Port, PORT),
        (UrlError::NotPublic, NOT_PUBLIC),
    ];
    let rows = groups.iter();
    rows.flat_map(|(fault, urls)| urls.iter().map(|url| (*url, *fault)))
        .collect()
}

#[test]
fn a_public_https_url_is_accepted_unchanged() {
    each_row(TAKEN, |url| {
        let taken = OutboundUrl::parse(url, AddressPolicy::Public);
        let taken = taken.unwrap_or_else(|fault| panic!("{url}: {fault}"));
        assert_eq!(taken.as_str(), url);
        // The HTTP client must read the same host.
        let uri: http::Uri = url.parse().unwrap();
        let host = uri.host().unwrap();
        assert!(
            url.to_ascii_lowercase()
                .contains(&host.to_ascii_lowercase())
        );
    });
}

#[test]
fn an_ambiguous_or_private_url_is_refused_with_its_fault() {
    let refused = refused();
    assert!(refused.len() + TAKEN.len() >= 200, "{}", refused.len());
    each_row(refused, |(url, fault)| {
        let parsed = OutboundUrl::parse(url, AddressPolicy::Public);
        assert_eq!(parsed.map(|_| ()), Err(fault), "{url:?}");
    });
}

#[test]
fn a_url_is_at_most_2048_bytes_long() {
    let of = |length: usize| {
        let base = "https://hook.example/";
        format!("{base}{}", "x".repeat(length - base.len()))
    };
    assert!(OutboundUrl::parse(&of(2048), AddressPolicy::Public).is_ok());
    let long = OutboundUrl::parse(&of(2049), AddressPolicy::Public);
    assert_eq!(long, Err(UrlError::Form));
}

#[test]
fn loopback_reach_allows_this_machine_and_no_private_network() {
    let rows = [
        "http://localhost:9999/webhook",
        "http://127.0.0.1:9999/webhook",
        "http://[::1]:9999/",
        "https://localhost/",
        "https://hook.example/",
    ];
    each_row(rows, |url| {
        assert!(
            OutboundUrl::parse(url, AddressPolicy::Loopback).is_ok(),
            "{url}"
        );
    });
    let cases = [
        ("http://hook.example/", UrlError::Scheme),
        ("http://10.0.0.1/", UrlError::NotPublic),
        ("http://169.254.169.254/", UrlError::NotPublic),
        ("https://192.168.0.1/", UrlError::NotPublic),
        ("http://8.8.8.8/", UrlError::NotPublic),
        ("http://user@localhost/", UrlError::UserInfo),
        ("ftp://localhost/", UrlError::Scheme),
    ];
    each_row(cases, |(url, fault)| {
        let parsed = OutboundUrl::parse(url, AddressPolicy::Loopback);
        assert_eq!(parsed, Err(fault), "{url}");
    });
}

#[test]
fn unlimited_reach_still_requires_the_plain_form() {
    for url in [
        "http://10.0.0.1:8080/",
        "http://hook/",
        "https://[fd00::1]/",
    ] {
        assert!(
            OutboundUrl::parse(url, AddressPolicy::Anything).is_ok(),
            "{url}"
        );
    }
    let cases = [
        ("http://user@hook/", UrlError::UserInfo),
        ("file:///etc/passwd", UrlError::Scheme),
        ("http://2130706433/", UrlError::Host),
    ];
    each_row(cases, |(url, fault)| {
        let parsed = OutboundUrl::parse(url, AddressPolicy::Anything);
        assert_eq!(parsed, Err(fault), "{url}");
    });
}
