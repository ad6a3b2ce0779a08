//! Says which IP addresses are public unicast.
//!
//! All others are refused: those in the IANA registries of special-purpose addresses
//! (RFC 6890 and its successors), and those of cloud metadata services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// IPv4 blocks that are not public: first address and length of the prefix.
const V4: [(Ipv4Addr, u32); 18] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // RFC 6598: between carriers and their customers; some clouds use it inside.
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // The address of the platform in each virtual network of Azure.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Link-local; the metadata services of most clouds are here.
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 31, 196, 0), 24),
    (Ipv4Addr::new(192, 52, 193, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(192, 175, 48, 0), 24),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Multicast, reserved, broadcast.
    (Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// IPv6 blocks inside the global unicast space (`2000::/3`) that are not public.
/// Addresses outside that space are never public: loopback, mapped and translated
/// IPv4 (`::ffff:0:0/96`, `64:ff9b::/96`), unique local, link-local, multicast.
const V6: [(Ipv6Addr, u32); 4] = [
    // Protocol assignments, including Teredo and benchmarking.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4: contains an IPv4 address, which could be private.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether `address` is a public unicast address.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let bits = u32::from(address);
            let inside = |(first, length): &(Ipv4Addr, u32)| {
                (bits ^ u32::from(*first)).leading_zeros() >= *length
            };
            !V4.iter().any(inside)
        }
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            let inside = |(first, length): &(Ipv6Addr, u32)| {
                (bits ^ u128::from(*first)).leading_zeros() >= *length
            };
            // The upper 3 bits of `2000::/3` are 001.
            bits >> 125 == 1 && !V6.iter().any(inside)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_public;
    use a2a_lambda_rows::each_row;

    const PUBLIC: [&str; 20] = [
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "168.63.129.17",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450:4001::200e",
        "2001:4860:4860::8888",
        "2001:200::1",
    ];

    const PRIVATE: [&str; 49] = [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "168.63.129.16",
        "169.254.169.254",
        "169.254.170.2",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.0.2.1",
        "192.31.196.1",
        "192.52.193.1",
        "192.88.99.1",
        "192.168.1.1",
        "192.175.48.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "224.0.0.1",
        "239.255.255.250",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:8.8.8.8",
        "::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:2::1",
        "2001:10::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ];

    #[test]
    fn only_public_unicast_addresses_are_public() {
        each_row(PUBLIC, |public| {
            assert!(is_public(public.parse().unwrap()), "{public}");
        });
        each_row(PRIVATE, |private| {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        });
    }
}
