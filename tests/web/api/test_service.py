def test_the_service_describes_itself_from_its_routes(api, app) -> None:
    told = api.client.get("/v1").json()
    assert {"service", "collab", "org", "central_bucket", "score_field", "score_unit", "score_order", "docs",
            "conventions", "endpoints"} == set(told)  # fmt: skip
    assert (told["collab"], told["org"], told["central_bucket"]) == ("tiny", "race", "race/tiny-main-bucket")
    assert told["docs"] == "http://testserver/docs"
    listed = {(item["method"], item["path"]): item for item in told["endpoints"]}
    paths = app.openapi()["paths"]
    board = {
        (method.upper(), path)
        for path, operations in paths.items()
        for method, operation in operations.items()
        if not {"hub", "store"} & set(operation["tags"])
    }
    assert set(listed) == board
    assert {path for path in paths if "bucket" in path}.isdisjoint(path for _, path in listed)
    assert all(item["purpose"].endswith(".") for item in listed.values())
    assert listed["POST", "/v1/messages"]["params"][:6] == ["source", "agent_id", "body", "type", "refs", "broadcast"]
    assert {"since", "until", "type", "via", "after", "before"} <= set(listed["GET", "/v1/messages"]["params"])


def test_health_is_200(api) -> None:
    assert api.client.get("/v1/healthz").status_code == 200
