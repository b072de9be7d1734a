-- From what was served and what was clicked to one row per shown document.
--
-- served:  search_id, time, query, document_id, rank, clicked, add_to_cart, purchase, dwell, policy,
--          propensity, team, credit, client, bot, sorted; one row per document that was shown
-- actions: search_id, time, document_id, action, dwell; one row per event
--
-- Times are milliseconds since 1970, flags 0 or 1, ranks begin at 1. `dropped` says why a row is not to be
-- used; `times` is how often the document was logged for its search, `taken` how many events it has.
WITH timed AS (
    SELECT search_id, min(time) AS began FROM served GROUP BY search_id
), classified AS (
    SELECT actions.search_id, actions.document_id, actions.action, actions.time, actions.dwell,
        CASE WHEN actions.time > timed.began + :late THEN 1
             WHEN actions.time < timed.began - :early THEN 1 ELSE 0 END AS misplaced
    FROM actions JOIN timed ON actions.search_id = timed.search_id
), numbered AS (
    SELECT search_id, document_id, action, dwell, misplaced, row_number() OVER (
        PARTITION BY search_id, document_id, action ORDER BY misplaced, time) AS nth
    FROM classified
), taken AS (
    SELECT search_id, document_id,
        max(CASE WHEN action = 'click' THEN 1 ELSE 0 END) AS clicked,
        max(CASE WHEN action = 'add_to_cart' THEN 1 ELSE 0 END) AS add_to_cart,
        max(CASE WHEN action = 'purchase' THEN 1 ELSE 0 END) AS purchase,
        max(dwell) AS dwell,
        count(*) AS events
    FROM numbered WHERE misplaced = 0 AND nth = 1 GROUP BY search_id, document_id
), documents AS (
    SELECT search_id, document_id, min(time) AS time, min(query) AS query, min(client) AS client,
        min(rank) AS rank, max(clicked) AS clicked, max(add_to_cart) AS add_to_cart,
        max(purchase) AS purchase, max(dwell) AS dwell, min(policy) AS policy,
        min(propensity) AS propensity, min(team) AS team, min(credit) AS credit, max(bot) AS bot, max(sorted) AS sorted,
        count(*) AS times
    FROM served GROUP BY search_id, document_id
), joined AS (
    SELECT documents.search_id, documents.document_id, documents.time, documents.query,
        documents.client, documents.rank, documents.policy, documents.propensity, documents.team,
        documents.credit,
        documents.bot, documents.sorted, documents.times,
        coalesce(taken.events, 0) AS taken,
        greatest(coalesce(documents.clicked, 0), coalesce(taken.clicked, 0)) AS clicked,
        greatest(coalesce(documents.add_to_cart, 0), coalesce(taken.add_to_cart, 0)) AS add_to_cart,
        greatest(coalesce(documents.purchase, 0), coalesce(taken.purchase, 0)) AS purchase,
        coalesce(taken.dwell, documents.dwell) AS dwell
    FROM documents LEFT JOIN taken
        ON documents.search_id = taken.search_id AND documents.document_id = taken.document_id
), searches AS (
    SELECT search_id, min(time) AS began, min(query) AS query, min(client) AS client,
        max(bot) AS bot, max(sorted) AS sorted, count(*) AS shown, sum(clicked) AS clicks,
        min(document_id) AS least, max(document_id) AS most,
        sum(rank * length(document_id)) AS print
    FROM joined GROUP BY search_id
), seen AS (
    SELECT search_id, began - lag(began) OVER (
        PARTITION BY client, query, shown, least, most, print ORDER BY began, search_id
    ) AS since
    FROM searches WHERE client IS NOT NULL
), days AS (
    SELECT client, count(*) AS searches, sum(clicks) AS clicks, sum(shown) AS shown
    FROM searches WHERE client IS NOT NULL GROUP BY client, floor(began / 86400000.0)
), bots AS (
    SELECT DISTINCT client FROM days
    WHERE searches > :bot_searches OR (shown >= :bot_shown AND clicks >= :bot_share * shown)
)
SELECT joined.search_id, searches.began AS time, searches.query, joined.document_id, joined.rank,
    joined.clicked, joined.add_to_cart, joined.purchase, joined.dwell, joined.policy,
    joined.propensity, joined.team, joined.credit, joined.client, joined.times, joined.taken,
    CASE WHEN searches.bot = 1 OR bots.client IS NOT NULL THEN 'bot'
         WHEN searches.sorted = 1 THEN 're-sorted by the user'
         WHEN seen.since IS NOT NULL AND seen.since <= :reload THEN 'reload' END AS dropped
FROM joined
JOIN searches ON joined.search_id = searches.search_id
LEFT JOIN seen ON joined.search_id = seen.search_id
LEFT JOIN bots ON searches.client = bots.client
