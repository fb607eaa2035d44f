//! May this address be asked on the cluster's behalf? An endpoint of the cloud or a proxy that somebody named.
//!
//! Whoever can name an address makes the operator send requests there, with its credentials or in its
//! place. What a cloud serves on the link of the machine (metadata, credentials) is therefore never asked
//! under another name, and what the cluster's own configuration names must be https. Flags are the word of
//! whoever runs the operator, so they may name a stand-in without TLS. Names are not resolved here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Who named the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedBy {
    /// A flag of the operator.
    Flag,
    /// `Infrastructure`, which administrators of the cluster write.
    Cluster,
    /// The cluster's or the environment's proxy, which is seldom spoken to over TLS.
    Proxy,
}

/// Why an address is not asked. Never repeats the URL, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("expected an http or https URL with a host, and nothing before it but the scheme")]
    NoUrl,
    #[error("expected an https URL")]
    NotSecure,
    #[error("the host is neither a name nor an address in its usual form")]
    OddHost,
    #[error("the address belongs to the link of the machine, and never to a service of the cloud")]
    LinkLocal,
    #[error("the address is no host's")]
    NoHost,
}

/// Checks a URL.
///
/// # Errors
/// Says why it is not asked.
pub fn check(url: &str, named_by: NamedBy) -> Result<(), Refused> {
    let (scheme, rest) = url.split_once("://").ok_or(Refused::NoUrl)?;
    let is_secure = match scheme.to_ascii_lowercase().as_str() {
        "https" => true,
        "http" => false,
        _ => return Err(Refused::NoUrl),
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let authority = match (authority.rsplit_once('@'), named_by) {
        // Proxies are given their password so.
        (Some((_, host)), NamedBy::Proxy) => host,
        (Some(_), NamedBy::Flag | NamedBy::Cluster) => return Err(Refused::NoUrl),
        (None, _) => authority,
    };
    if !is_secure && named_by == NamedBy::Cluster {
        return Err(Refused::NotSecure);
    }
    check_host(host_of(authority)?)
}

/// The host without brackets, and whether it must be an address of IPv6.
fn host_of(authority: &str) -> Result<(&str, bool), Refused> {
    let (host, port, is_six) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(Refused::NoUrl)?;
            (host, port.strip_prefix(':').unwrap_or(port), true)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, port, false),
            None => (authority, "", false),
        },
    };
    if host.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Refused::NoUrl);
    }
    Ok((host, is_six))
}

fn check_host((host, is_six): (&str, bool)) -> Result<(), Refused> {
    if is_six {
        // A zone names a link.
        let address: Ipv6Addr = host.parse().map_err(|_| Refused::OddHost)?;
        return check_address(IpAddr::V6(address));
    }
    if let Ok(address) = host.parse::<Ipv4Addr>() {
        return check_address(IpAddr::V4(address));
    }
    // 2852039166, 0xa9fea9fe and 169.254.43518 are addresses for some readers, and names for nobody.
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || last.to_ascii_lowercase().strip_prefix("0x").is_some_and(is_hexadecimal);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    if is_number || !host.bytes().all(is_plain) || host.starts_with('.') {
        return Err(Refused::OddHost);
    }
    Ok(())
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn check_address(address: IpAddr) -> Result<(), Refused> {
    let (is_on_link, is_nobodys) = match address.to_canonical() {
        IpAddr::V4(four) => (
            four.is_link_local(),
            four.is_unspecified() || four.is_broadcast() || four.is_multicast(),
        ),
        IpAddr::V6(six) => {
            let segments = six.segments();
            // fd00:ec2::/32 is where AWS has the same services for IPv6.
            let is_of_aws = matches!(segments, [0xfd00, 0x0ec2, ..]);
            (six.is_unicast_link_local() || is_of_aws, six.is_unspecified() || six.is_multicast())
        }
    };
    match (is_on_link, is_nobodys) {
        (true, _) => Err(Refused::LinkLocal),
        (false, true) => Err(Refused::NoHost),
        (false, false) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{NamedBy::*, Refused::*, *};

    #[test]
    fn what_leads_to_the_link_of_the_machine_is_refused_however_it_is_written() {
        let table: [(&str, NamedBy, Result<(), Refused>); 38] = [
            ("https://ec2.eu-central-1.amazonaws.com", Cluster, Ok(())),
            ("https://ec2.eu-central-1.amazonaws.com:443/path?x#y", Cluster, Ok(())),
            ("HTTPS://vpce-1.ec2.vpce.amazonaws.com/", Cluster, Ok(())),
            ("https://10.0.0.7:8443", Cluster, Ok(())),
            ("https://127.0.0.1:1", Cluster, Ok(())),
            ("https://[2001:db8::1]:8443", Cluster, Ok(())),
            ("https://[fd00:ec3::1]", Cluster, Ok(())),
            ("http://ec2.example", Cluster, Err(NotSecure)),
            ("http://127.0.0.1:1", Cluster, Err(NotSecure)),
            ("http://127.0.0.1:1", Flag, Ok(())),
            ("http://ec2.machinist.invalid:80", Flag, Ok(())),
            ("https://169.254.169.254", Cluster, Err(LinkLocal)),
            ("http://169.254.169.254/latest/meta-data", Flag, Err(LinkLocal)),
            ("http://169.254.170.2", Flag, Err(LinkLocal)),
            ("http://169.254.170.23:80", Proxy, Err(LinkLocal)),
            ("https://[fd00:ec2::254]", Cluster, Err(LinkLocal)),
            ("https://[fd00:0ec2:0:0::23]:443/", Flag, Err(LinkLocal)),
            ("https://[fe80::1]", Cluster, Err(LinkLocal)),
            ("https://[fe80::1%25eth0]", Cluster, Err(OddHost)),
            ("https://[::ffff:169.254.169.254]", Cluster, Err(LinkLocal)),
            ("https://[::ffff:a9fe:a9fe]", Flag, Err(LinkLocal)),
            ("https://2852039166", Cluster, Err(OddHost)),
            ("https://0xa9fea9fe/", Flag, Err(OddHost)),
            ("https://0xA9.0xFE.0xA9.0xFE", Flag, Err(OddHost)),
            ("https://169.254.43518", Cluster, Err(OddHost)),
            ("https://0251.0376.0251.0376", Cluster, Err(OddHost)),
            ("https://169.254.169.254.", Cluster, Err(OddHost)),
            ("https://0.0.0.0", Flag, Err(NoHost)),
            ("https://[::]", Flag, Err(NoHost)),
            ("https://224.0.0.1", Flag, Err(NoHost)),
            ("https://ec2.example@169.254.169.254", Cluster, Err(NoUrl)),
            ("https://169.254.169.254\\@ec2.example", Cluster, Err(LinkLocal)),
            ("http://me:secret@proxy.example:3128", Proxy, Ok(())),
            ("http://me:secret@169.254.169.254:3128", Proxy, Err(LinkLocal)),
            ("ftp://ec2.example", Flag, Err(NoUrl)),
            ("ec2.example", Flag, Err(NoUrl)),
            ("https://", Flag, Err(NoUrl)),
            ("https://ec2 .example", Flag, Err(OddHost)),
        ];
        for (url, named_by, expected) in table {
            assert_eq!(check(url, named_by), expected, "{url} {named_by:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}", host in "[0-9a-fx.:\\[\\]%@/]{0,30}") {
            check(&text, Cluster).ok();
            check(&format!("https://{host}"), Proxy).ok();
        }
    }
}
