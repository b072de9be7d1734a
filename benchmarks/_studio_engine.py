"""The bare engine: pgbench doing the statements that the studio does for one judgment."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from tests.studio.postgres import BINARIES, Postgres

_JUDGMENT = r"""
\set person random(1, :people)
\set query random(1, :queries)
\set left random(0, 18)
SELECT users.id, users.name, users.email, users.is_admin, memberships.role, projects.* FROM users
  JOIN api_tokens ON api_tokens.user_id = users.id
  LEFT JOIN memberships ON memberships.user_id = users.id AND memberships.project_id = 1
  LEFT JOIN projects ON projects.id = memberships.project_id
  WHERE api_tokens.key = encode(sha256(('podium_benchmark_' || (:person - 1))::bytea), 'hex')
  AND api_tokens.expires_at > 0 AND NOT users.disabled;
BEGIN;
SELECT queries.* FROM queries LEFT JOIN leases ON leases.query_id = queries.id
  AND leases.token = md5(:person::text)::uuid WHERE queries.id = :query
  FOR UPDATE OF queries;
SELECT entries AS position FROM queries WHERE id = :query \gset
DELETE FROM leases WHERE token = md5(:person::text)::uuid RETURNING *;
SELECT token, "left", "right", user_id, expires_at FROM leases
  WHERE query_id = :query AND NOT released;
INSERT INTO log (query_id, position, user_id, kind, "left", "right", value, purpose, counts, late,
  token, part, at, seconds) VALUES (:query, :position, :person, 'verdict', :left, 19, 1, 'main',
  true, false, gen_random_uuid(), 0, 1e9, 2.0);
INSERT INTO tallies (query_id, user_id, judgments, seconds, last_at)
  VALUES (:query, :person, 1, 2.0, 1e9) ON CONFLICT (query_id, user_id) DO UPDATE SET
  judgments = tallies.judgments + 1, seconds = tallies.seconds + excluded.seconds,
  last_at = excluded.last_at;
INSERT INTO judges (user_id, project_id, judgments, seconds, open_changed, open_id,
  assigned_changed, assigned_id) VALUES (:person, 1, 1, 2.0, 0, 0, 0, 0)
  ON CONFLICT (user_id, project_id) DO UPDATE SET
  judgments = judges.judgments + 1, seconds = judges.seconds + excluded.seconds;
INSERT INTO leases (token, query_id, user_id, tab, "left", "right", purpose, granted_at,
  expires_at, released, renewed) VALUES (md5(:person::text)::uuid, :query, :person, 'tab', :left,
  19, 'main', 1e9, 2e9, false, false) ON CONFLICT DO NOTHING;
UPDATE queries SET entries = entries + 1, judgments = judgments + 1, free = 3, available = true,
  lease_expiry = 2e9, done = false, expected_left = 7 WHERE id = :query;
COMMIT;
SELECT judgments, seconds FROM judges WHERE user_id = :person AND project_id = 1;
"""
"""As the statements of `podium.studio.judging.service` and its route, and an entry's number."""


def bare_engine(
    postgres: Postgres, database: str, *, people: int, queries: int, clients: int, seconds: int
) -> float:
    """Judgments per second that the engine does alone, its statements prepared."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(_JUDGMENT)
        script.flush()
        done = subprocess.run(
            [
                BINARIES / "pgbench", "-h", "127.0.0.1", "-p", str(postgres.port), "-U", "podium",
                "-n", "-M", "prepared", "--max-tries", "5", "-c", str(clients), "-j", "2",
                "-T", str(seconds), "-D", f"people={people}", "-D", f"queries={queries}",
                "-f", Path(script.name), database,
            ],
            capture_output=True,
            text=True,
            check=True,
        )  # fmt: skip
    rate = re.search(r"tps = ([\d.]+)", done.stdout)
    failed = re.search(r"failed transactions: (\d+)", done.stdout)
    if rate is None or failed is None or int(failed[1]):
        raise RuntimeError(done.stdout + done.stderr)
    return float(rate[1])
