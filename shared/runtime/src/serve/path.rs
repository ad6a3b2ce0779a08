//! Finds the path of a request below the API: without the base path of a custom domain.

/// The part of the raw path `raw` that `resource`, the matched resource of API Gateway,
/// describes: its last segments, as many as the resource has.
///
/// Behind a custom domain the path of an event begins with the base path of the mapping,
/// which the functions do not know. A path without one is returned as it is. So is that
/// of an event without a resource, and that of a resource that takes any number of
/// segments.
pub(super) fn below_the_api<'a>(raw: &'a str, resource: Option<&str>) -> &'a str {
    let Some(resource) = resource.filter(|it| it.starts_with('/') && !it.contains('+')) else {
        return raw;
    };
    // Empty segments do not count: `//` and a slash at the end add no segment to either.
    // An encoded slash is not decoded in an event, so it is part of its segment.
    let segments = |path: &str| path.split('/').filter(|it| !it.is_empty()).count();
    let (count, base) = (segments(raw), segments(resource));
    if count <= base {
        return raw;
    }
    let mut rest = raw;
    for _ in base..count {
        let tail = rest.trim_start_matches('/');
        let end = tail.find('/').unwrap_or(tail.len());
        rest = tail.get(end..).unwrap_or_default();
    }
    // Of several slashes after the base path one is left.
    match rest.trim_start_matches('/').len() {
        0 => "/",
        length => rest.get(rest.len() - length - 1..).unwrap_or(raw),
    }
}

#[cfg(test)]
mod tests {
    use super::below_the_api;
    use a2a_lambda_rows::each_row;
    use a2a_lambda_wire::Endpoint;
    use proptest::prelude::*;

    const ROUTES: &str = include_str!("../../../../Cargo.toml");

    /// Method and resource of each route of the deployment.
    fn routes() -> Vec<(&'static str, &'static str)> {
        let (_, table) = ROUTES
            .split_once("[workspace.metadata.lambda.watch.router]\n")
            .unwrap();
        let rows = table.lines().take_while(|row| row.starts_with('"'));
        // The paths for operators are not those of the protocol.
        let rows = rows.filter(|row| !row.contains("\"ops\""));
        rows.flat_map(|row| {
            let (path, entries) = row.split_once(" = ").unwrap();
            let methods = entries.split("method = \"").skip(1);
            methods.map(|rest| (rest.split('"').next().unwrap(), path.trim_matches('"')))
        })
        .collect()
    }

    #[test]
    fn the_base_path_of_a_custom_domain_is_not_part_of_the_path() {
        let rows = [
            (
                "/agents/.well-known/agent-card.json",
                "/.well-known/agent-card.json",
                "/.well-known/agent-card.json",
            ),
            ("/agents/message:send", "/message:send", "/message:send"),
            (
                "/a/b/c/acme/tasks/t1:cancel",
                "/{tenant}/tasks/{id}",
                "/acme/tasks/t1:cancel",
            ),
            // A base path that is also the name of a route, or of a tenant.
            ("/tasks/tasks/tasks", "/tasks/{id}", "/tasks/tasks"),
            ("/acme/acme/tasks", "/{tenant}/tasks", "/acme/tasks"),
            ("/agents", "/", "/"),
            ("/agents/", "/", "/"),
            ("/agents/v2", "/", "/"),
            // Slashes: at the end, in an id, and too many.
            ("/agents/tasks/", "/tasks", "/tasks/"),
            ("/agents/tasks/a%2Fb", "/tasks/{id}", "/tasks/a%2Fb"),
            ("/agents//tasks/t1", "/tasks/{id}", "/tasks/t1"),
            ("//agents/tasks", "/tasks", "/tasks"),
        ];
        each_row(rows, |(raw, resource, path)| {
            assert_eq!(below_the_api(raw, Some(resource)), path, "{raw} {resource}");
        });
    }

    #[test]
    fn a_path_without_a_base_path_is_not_changed() {
        let rows = [
            ("/", Some("/")),
            ("", Some("/")),
            ("/tasks", Some("/tasks")),
            ("/tasks/", Some("/tasks")),
            ("//tasks", Some("/tasks")),
            ("/tasks//t1", Some("/tasks/{id}")),
            ("/tasks", Some("/tasks/{id}")),
            ("/tasks/a%2Fb", Some("/tasks/{id}")),
            ("/agents/tasks", Some("/{proxy+}")),
            ("/agents/tasks", Some("/v1/{proxy+}")),
            ("/agents/tasks", Some("$default")),
            ("/agents/tasks", Some("")),
            ("/agents/tasks", None),
        ];
        each_row(rows, |(raw, resource)| {
            assert_eq!(below_the_api(raw, resource), raw, "{resource:?}");
        });
    }

    proptest! {
        #[test]
        fn every_route_is_the_same_below_any_base_path(
            base in prop::collection::vec("[a-zA-Z0-9._~%:-]{1,12}", 0..4),
            value in "[a-zA-Z0-9._%:-]{1,20}",
            route in prop::sample::select(routes()),
        ) {
            let (method, resource) = route;
            let filled = resource.replace("{tenant}", "acme").replace("{configId}", &value);
            let filled = filled.replace("{id}", &value);
            let before = base.iter().map(|part| format!("/{part}")).collect::<String>();
            // A client may leave out the slash of the base URL only.
            let raw = format!("{before}{filled}");
            let path = below_the_api(&raw, Some(resource));
            prop_assert_eq!(path, &filled);
            let site = a2a_lambda_wire::site(method, &filled);
            prop_assert_eq!(a2a_lambda_wire::site(method, path), site);
            if !value.contains(['%', ':', '.']) && !filled.contains("tasks/") {
                prop_assert_ne!(site, Endpoint::Nowhere);
            }
        }
    }
}
