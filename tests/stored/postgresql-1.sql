-- Schema 1 in PostgreSQL, as a broker of fc53730d left it when it was killed: a task that has ended, one
-- that waits, and one whose payload is a blob (pg_dump --schema=taskmq --inserts, comments and psql's
-- own commands taken out).
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA taskmq;
ALTER SCHEMA taskmq OWNER TO taskmq;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE taskmq.attempt (
    ns integer NOT NULL,
    number bigint NOT NULL,
    attempt bigint NOT NULL,
    worker text NOT NULL,
    started_at bigint NOT NULL,
    ended_at bigint NOT NULL,
    how smallint NOT NULL,
    error_code integer NOT NULL,
    error_message bytea NOT NULL,
    secret bytea NOT NULL,
    request_id bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_vacuum_cost_delay='0', toast.autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_threshold='5000', toast.autovacuum_vacuum_cost_delay='0');
ALTER TABLE taskmq.attempt OWNER TO taskmq;
CREATE TABLE taskmq.event (
    ns integer NOT NULL,
    first_seq bigint NOT NULL,
    pos bigint NOT NULL,
    count integer NOT NULL,
    at bigint NOT NULL,
    list bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_vacuum_cost_delay='0', toast.autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_threshold='5000', toast.autovacuum_vacuum_cost_delay='0');
ALTER TABLE ONLY taskmq.event ALTER COLUMN list SET COMPRESSION lz4;
ALTER TABLE taskmq.event OWNER TO taskmq;
CREATE TABLE taskmq.fence (
    shard smallint NOT NULL,
    part "char" NOT NULL,
    epoch bigint NOT NULL
);
ALTER TABLE taskmq.fence OWNER TO taskmq;
CREATE TABLE taskmq.journal (
    shard smallint NOT NULL,
    epoch bigint NOT NULL,
    batch bigint NOT NULL,
    body bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_vacuum_cost_delay='0', toast.autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_threshold='5000', toast.autovacuum_vacuum_cost_delay='0');
ALTER TABLE ONLY taskmq.journal ALTER COLUMN body SET COMPRESSION lz4;
ALTER TABLE taskmq.journal OWNER TO taskmq;
CREATE TABLE taskmq.label (
    ns integer NOT NULL,
    number bigint NOT NULL,
    place bigint NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    value bytea NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_vacuum_cost_delay='0', toast.autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_threshold='5000', toast.autovacuum_vacuum_cost_delay='0');
ALTER TABLE taskmq.label OWNER TO taskmq;
CREATE TABLE taskmq.meta (
    single boolean NOT NULL,
    version integer NOT NULL,
    CONSTRAINT meta_single_check CHECK (single)
);
ALTER TABLE taskmq.meta OWNER TO taskmq;
CREATE TABLE taskmq.namespace (
    id integer NOT NULL,
    shard smallint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C"
);
ALTER TABLE taskmq.namespace OWNER TO taskmq;
ALTER TABLE taskmq.namespace ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME taskmq.namespace_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE taskmq."row" (
    shard smallint NOT NULL,
    kind smallint NOT NULL,
    key bytea NOT NULL,
    body bytea NOT NULL,
    expires_at bigint NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_vacuum_cost_delay='0', toast.autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_threshold='5000', toast.autovacuum_vacuum_cost_delay='0');
ALTER TABLE taskmq."row" OWNER TO taskmq;
CREATE TABLE taskmq.shard (
    shard smallint NOT NULL,
    generation bigint NOT NULL,
    epoch bigint NOT NULL,
    beat bigint NOT NULL,
    owner text COLLATE pg_catalog."C",
    system_id bigint NOT NULL,
    timeline integer NOT NULL,
    pid_commit integer NOT NULL,
    pid_write integer NOT NULL
);
ALTER TABLE taskmq.shard OWNER TO taskmq;
CREATE TABLE taskmq.task (
    ns integer NOT NULL,
    number bigint NOT NULL,
    id uuid NOT NULL,
    owner text NOT NULL COLLATE pg_catalog."C",
    queue text NOT NULL COLLATE pg_catalog."C",
    session text COLLATE pg_catalog."C",
    status smallint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    leased boolean NOT NULL,
    last_event bigint NOT NULL,
    dedup_key text COLLATE pg_catalog."C",
    parent uuid,
    labels bytea,
    payload_bytes integer NOT NULL,
    result_bytes integer NOT NULL,
    rest bytea NOT NULL,
    payload bytea,
    result bytea
)
WITH (fillfactor='90', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_vacuum_cost_delay='0', toast.autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_threshold='5000', toast.autovacuum_vacuum_cost_delay='0');
ALTER TABLE ONLY taskmq.task ALTER COLUMN rest SET COMPRESSION lz4;
ALTER TABLE ONLY taskmq.task ALTER COLUMN payload SET COMPRESSION lz4;
ALTER TABLE ONLY taskmq.task ALTER COLUMN result SET COMPRESSION lz4;
ALTER TABLE taskmq.task OWNER TO taskmq;
CREATE TABLE taskmq.tombstone (
    age bigint NOT NULL,
    ns integer NOT NULL,
    id uuid NOT NULL,
    number bigint NOT NULL,
    code integer NOT NULL,
    why smallint NOT NULL,
    at bigint NOT NULL,
    owner text NOT NULL,
    queue text NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='5000', autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_vacuum_cost_delay='0', toast.autovacuum_vacuum_scale_factor='0.02', toast.autovacuum_vacuum_threshold='5000', toast.autovacuum_vacuum_cost_delay='0');
ALTER TABLE taskmq.tombstone OWNER TO taskmq;
ALTER TABLE taskmq.tombstone ALTER COLUMN age ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME taskmq.tombstone_age_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE taskmq.written (
    shard smallint NOT NULL,
    epoch bigint NOT NULL,
    batch bigint NOT NULL,
    last_number bigint NOT NULL,
    last_pos bigint NOT NULL,
    newest_ms bigint NOT NULL,
    tasks bigint NOT NULL,
    tombstones bigint NOT NULL,
    event_bytes bigint NOT NULL
);
ALTER TABLE taskmq.written OWNER TO taskmq;
INSERT INTO taskmq.event VALUES (1, 1, 1, 1, 1795895016613, '\x0a24080110a5f9bc9da234180f5a057569643a308201057569643a30880106920104706c616e');
INSERT INTO taskmq.event VALUES (1, 2, 2, 2, 1795895016620, '\x0a2c080210acf9bc9da234180f320273315a057569643a3062046d6164658201057569643a3088010392010273310a46080310acf9bc9da2341801221001a223af3cab71479e714d53da61760d2a04646f6e653202733138015a057569643a30720c0a046b696e641204646f6e658201057569643a30');
INSERT INTO taskmq.event VALUES (1, 4, 4, 1, 1795895016626, '\x0a58080410b2f9bc9da2341802221001a223af3cab71479e714d53da61760d2a04646f6e6532027331380240014801520a766d2d33303631342d315a057569643a30720c0a046b696e641204646f6e6578038201057569643a30');
INSERT INTO taskmq.event VALUES (1, 5, 5, 1, 1795895016631, '\x0a58080510b7f9bc9da2341808221001a223af3cab71479e714d53da61760d2a04646f6e6532027331380440024801520a766d2d33303631342d315a057569643a30720c0a046b696e641204646f6e6578048201057569643a30');
INSERT INTO taskmq.event VALUES (1, 6, 6, 1, 1795895016638, '\x0a35080610bef9bc9da2341801221001a223af3cbe7fe08d645b5355a24a992a05776169747338015a057569643a308201057569643a30');
INSERT INTO taskmq.event VALUES (1, 7, 7, 1, 1795895016648, '\x0a35080710c8f9bc9da2341801221001a223af3cc47b9492674978eb90822d2a056c6172676538015a057569643a308201057569643a30');
INSERT INTO taskmq.fence VALUES (0, 'c', 1);
INSERT INTO taskmq.fence VALUES (0, 'w', 1);
INSERT INTO taskmq.label VALUES (1, 1, 0, 'kind', '\x646f6e65');
INSERT INTO taskmq.meta VALUES (true, 1);
INSERT INTO taskmq.namespace OVERRIDING SYSTEM VALUE VALUES (1, 0, 'default');
INSERT INTO taskmq."row" VALUES (0, 24, '\x74696d657300', '\x000000000000000000000000000000000000000000000000', 0);
INSERT INTO taskmq."row" VALUES (0, 4, '\x00', '\x293cc5a3bb9cfc570000000000000003458edccfde2aa7726016e25ad77e5874ad4d8c94912989c6d541374677b144f1', 0);
INSERT INTO taskmq."row" VALUES (0, 11, '\x64656661756c740000706c616e', '\x080110a5f9bc9da2341a057569643a3022057569643a302a18b036901ec1fe26df0000000000000001000000000000000132077b2261223a317d', 0);
INSERT INTO taskmq."row" VALUES (0, 19, '\x64656661756c7400', '\x08011807', 0);
INSERT INTO taskmq."row" VALUES (0, 10, '\x64656661756c7400733100', '\x0a027331180120648201057569643a308801acf9bc9da2349001acf9bc9da234980102b801acf9bc9da234', 0);
INSERT INTO taskmq."row" VALUES (0, 15, '\x64656661756c74000746b496fe5979ba0000000000000001', '\x0a100746b496fe5979ba000000000000000112290a0a766d2d33303631342d311204646f6e652896ef013202766d3a0d7461736b63746c20302e312e301a057569643a3020b2f9bc9da23428b2f9bc9da234880101', 0);
INSERT INTO taskmq."row" VALUES (0, 23, '\xcbac06905cbdf3bb79463773546179412e3b5b32958208314b09dc6ea035c6e4', '\x00000000000493e00000000000000001', 0);
INSERT INTO taskmq."row" VALUES (0, 27, '\xcbac06905cbdf3bb79463773546179412e3b5b32958208314b09dc6ea035c6e47569643a3000', '\x0000000000000001', 0);
INSERT INTO taskmq.shard VALUES (0, 2971467161175653463, 1, 2, 'd6d197e1a8e5c125105558b74661e7dd broker.example', 7713308630171633338, 1, 30576, 30575);
INSERT INTO taskmq.task VALUES (1, 1, '01a223af-3cab-7147-9e71-4d53da61760d', 'uid:0', 'done', 's1', 4, 1795895016620, 0, false, 5, NULL, NULL, '\x6b696e6400646f6e6500', 4, 14, '\x70648801b7f9bc9da2349001b6f9bc9da2349801b7f9bc9da234b801e807c001b0ea01c801e807d00103d80101f00103880201920210756cfce04339ee82ec85b2cf03ed332c9a02100746b496fe5979ba0000000000000001a2020a766d2d33303631342d31aa02100746b496fe5979ba0000000000000002d20210cacf3032ce079f8644c71507673eb7aee8020182030a746578742f706c61696ea203057569643a30', '\x70616964', '\x77656c6c20646f6e650a70616964');
INSERT INTO taskmq.task VALUES (1, 2, '01a223af-3cbe-7fe0-8d64-5b5355a24a99', 'uid:0', 'waits', NULL, 1, 1795895016638, 0, false, 6, NULL, NULL, NULL, 5, 0, '\x70648801bef9bc9da234b801e807c001b0ea01c801e807d00103f00101d20210402e4010b88e5aac359531cc93238f95', '\x6c61746572', NULL);
INSERT INTO taskmq.task VALUES (1, 3, '01a223af-3cc4-7b94-9267-4978eb90822d', 'uid:0', 'large', NULL, 1, 1795895016648, 0, false, 7, NULL, NULL, NULL, 0, 0, '\x70648801c8f9bc9da234b801e807c001b0ea01c801e807d00103f00101d202108ffe86d8155345816ce1ab1d122cc5a1aa0329aa02260a20cbac06905cbdf3bb79463773546179412e3b5b32958208314b09dc6ea035c6e410e0a712', NULL, NULL);
INSERT INTO taskmq.written VALUES (0, 1, 7, 3, 7, 1795895016648, 3, 0, 446);
SELECT pg_catalog.setval('taskmq.namespace_id_seq', 1, true);
SELECT pg_catalog.setval('taskmq.tombstone_age_seq', 1, false);
ALTER TABLE ONLY taskmq.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (number, attempt, ns);
ALTER TABLE ONLY taskmq.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (ns, first_seq);
ALTER TABLE ONLY taskmq.fence
    ADD CONSTRAINT fence_pkey PRIMARY KEY (shard, part);
ALTER TABLE ONLY taskmq.journal
    ADD CONSTRAINT journal_pkey PRIMARY KEY (shard, epoch, batch);
ALTER TABLE ONLY taskmq.label
    ADD CONSTRAINT label_pkey PRIMARY KEY (ns, number, place);
ALTER TABLE ONLY taskmq.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (single);
ALTER TABLE ONLY taskmq.namespace
    ADD CONSTRAINT namespace_name_key UNIQUE (name);
ALTER TABLE ONLY taskmq.namespace
    ADD CONSTRAINT namespace_pkey PRIMARY KEY (id);
ALTER TABLE ONLY taskmq."row"
    ADD CONSTRAINT row_pkey PRIMARY KEY (shard, kind, key);
ALTER TABLE ONLY taskmq.shard
    ADD CONSTRAINT shard_pkey PRIMARY KEY (shard);
ALTER TABLE ONLY taskmq.task
    ADD CONSTRAINT task_pkey PRIMARY KEY (ns, number);
ALTER TABLE ONLY taskmq.tombstone
    ADD CONSTRAINT tombstone_pkey PRIMARY KEY (ns, id);
ALTER TABLE ONLY taskmq.written
    ADD CONSTRAINT written_pkey PRIMARY KEY (shard);
CREATE UNIQUE INDEX event_pos ON taskmq.event USING btree (pos);
CREATE INDEX label_found ON taskmq.label USING btree (ns, key, value, number DESC NULLS LAST);
CREATE INDEX row_expires ON taskmq."row" USING btree (shard, expires_at, kind, key) WHERE (expires_at > 0);
CREATE UNIQUE INDEX task_dedup ON taskmq.task USING btree (ns, owner, dedup_key) WHERE (dedup_key IS NOT NULL);
CREATE INDEX task_expiry ON taskmq.task USING btree (expires_at, number) WHERE ((expires_at > 0) AND (status >= 4) AND (NOT leased));
CREATE UNIQUE INDEX task_id ON taskmq.task USING btree (ns, id);
CREATE INDEX task_lasting ON taskmq.task USING btree (ns, number) WHERE ((expires_at = 0) AND (status >= 4) AND (NOT leased));
CREATE INDEX task_live ON taskmq.task USING btree (number) WHERE ((status < 4) OR leased);
CREATE INDEX task_parent ON taskmq.task USING btree (ns, parent, number DESC NULLS LAST) WHERE (parent IS NOT NULL);
CREATE INDEX task_queue ON taskmq.task USING btree (ns, queue, status, number DESC NULLS LAST);
CREATE INDEX task_session ON taskmq.task USING btree (ns, session, number DESC NULLS LAST) WHERE (session IS NOT NULL);
CREATE UNIQUE INDEX tombstone_age ON taskmq.tombstone USING btree (age);
