"""What may stand in front of a bracket of arguments in PostgreSQL: functions that only compute or read, by name.

Sources: chapter 9 of PostgreSQL's manual, and the manuals of `fuzzystrmatch`, `pg_trgm`, `pgvector`, `PostGIS` and `unaccent`.
"""

from __future__ import annotations

_RESERVED = "all any row some"
_CONDITIONS = "coalesce nullif greatest least num_nulls num_nonnulls grouping"
_STRINGS = """
ascii bit_length btrim casefold char_length character_length chr concat concat_ws convert convert_from convert_to decode encode
format initcap length left lower lpad ltrim md5 normalize octet_length overlay parse_ident position quote_ident quote_literal
quote_nullable regexp_count regexp_instr regexp_like regexp_match regexp_matches regexp_replace regexp_split_to_array
regexp_split_to_table regexp_substr repeat replace reverse right rpad rtrim split_part starts_with string_to_array
string_to_table strpos substr substring to_bin to_hex to_oct to_ascii translate trim unistr upper
"""
_BYTES = "bit_count crc32 crc32c hashtext get_bit get_byte set_bit set_byte sha224 sha256 sha384 sha512"
_MATHS = """
abs acos acosd acosh asin asind asinh atan atan2 atan2d atand atanh cbrt ceil ceiling cos cosd cosh cot cotd degrees div erf
erfc exp factorial floor gamma gcd lcm lgamma ln log log10 min_scale mod pi pow power radians random random_normal round scale
sign sin sind sinh sqrt tan tand tanh trim_scale trunc width_bucket
"""
_DATES = """
age clock_timestamp current_date current_time current_timestamp date_add date_bin date_part date_subtract date_trunc extract
isfinite justify_days justify_hours justify_interval localtime localtimestamp make_date make_interval make_time make_timestamp
make_timestamptz now overlaps statement_timestamp timeofday timezone to_char to_date to_number to_timestamp
transaction_timestamp
"""
_ENUMS_AND_IDS = "enum_first enum_last enum_range gen_random_uuid uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7"
_GEOMETRY = """
area box center circle diagonal diameter height isclosed isopen line lseg npoints path pclose point polygon popen radius slope
width
"""
_NETWORK = (
    "abbrev broadcast family host hostmask inet_merge inet_same_family macaddr8_set7bit masklen netmask network set_masklen"
)
_TEXT_SEARCH = """
array_to_tsvector get_current_ts_config json_to_tsvector jsonb_to_tsvector numnode phraseto_tsquery plainto_tsquery querytree
setweight strip to_tsquery to_tsvector ts_delete ts_filter ts_headline ts_lexize ts_rank ts_rank_cd tsquery_phrase
tsvector_to_array websearch_to_tsquery
"""
_JSON = """
array_to_json json_array json_array_length json_array_elements json_array_elements_text json_build_array json_build_object
json_each json_each_text json_exists json_extract_path json_extract_path_text json_object json_object_keys
json_populate_record json_populate_recordset json_query json_scalar json_serialize json_strip_nulls json_table
json_to_record json_to_recordset json_typeof json_value jsonb_array_elements jsonb_array_elements_text jsonb_array_length
jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_insert
jsonb_object jsonb_object_keys jsonb_path_exists jsonb_path_exists_tz jsonb_path_match jsonb_path_match_tz jsonb_path_query
jsonb_path_query_array jsonb_path_query_array_tz jsonb_path_query_first jsonb_path_query_first_tz jsonb_path_query_tz
jsonb_populate_record jsonb_populate_recordset jsonb_pretty jsonb_set jsonb_set_lax jsonb_strip_nulls jsonb_to_record
jsonb_to_recordset jsonb_typeof row_to_json to_json to_jsonb
"""
_ARRAYS_AND_RANGES = """
array_append array_cat array_dims array_fill array_length array_lower array_ndims array_position array_positions array_prepend
array_remove array_replace array_reverse array_sample array_shuffle array_sort array_to_string array_upper cardinality
datemultirange daterange generate_series generate_subscripts int4multirange int4range int8multirange int8range isempty
lower_inc lower_inf multirange nummultirange numrange range_merge trim_array tsmultirange tsrange tstzmultirange tstzrange
unnest upper_inc upper_inf
"""
_AGGREGATES = """
any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp every json_agg json_agg_strict
json_arrayagg json_object_agg json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict json_objectagg
jsonb_agg jsonb_agg_strict jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique jsonb_object_agg_unique_strict max
min mode percentile_cont percentile_disc range_agg range_intersect_agg regr_avgx regr_avgy regr_count regr_intercept regr_r2
regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp string_agg sum var_pop var_samp variance
"""
_WINDOWS = "cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number"
_CATALOGUE = """
col_description current_catalog current_database current_schema current_schemas format_type obj_description pg_collation_for
pg_column_size pg_get_constraintdef pg_get_expr pg_get_indexdef pg_get_partkeydef pg_get_serial_sequence pg_get_viewdef
pg_indexes_size pg_input_is_valid pg_partition_tree pg_relation_size pg_size_bytes pg_size_pretty pg_table_is_visible
pg_table_size pg_total_relation_size pg_typeof to_regclass to_regtype version
"""
_TYPES = """
bigint bool boolean bytea date float4 float8 geography geometry halfvec inet int int2 int4 int8 integer json jsonb money real
smallint sparsevec text timestamptz timetz uuid varbit vector
"""
_TRIGRAMS_AND_SOUNDS = """
daitch_mokotoff difference dmetaphone dmetaphone_alt levenshtein levenshtein_less_equal metaphone show_trgm similarity soundex
strict_word_similarity unaccent word_similarity
"""
_VECTORS = """
binary_quantize cosine_distance hamming_distance inner_product jaccard_distance l1_distance l2_distance l2_norm l2_normalize
subvector vector_dims vector_norm
"""
_POSTGIS = """
st_area st_asbinary st_asewkt st_asgeojson st_astext st_azimuth st_boundary st_buffer st_centroid st_closestpoint st_collect
st_contains st_convexhull st_coveredby st_covers st_crosses st_difference st_disjoint st_distance st_distancesphere st_dwithin
st_endpoint st_envelope st_equals st_extent st_geogfromtext st_geohash st_geometryn st_geometrytype st_geomfromgeojson
st_geomfromtext st_geomfromwkb st_intersection st_intersects st_isempty st_isvalid st_length st_makeenvelope st_makeline
st_makepoint st_makevalid st_numgeometries st_numpoints st_overlaps st_perimeter st_point st_pointn st_pointonsurface
st_setsrid st_simplify st_snaptogrid st_srid st_startpoint st_symdifference st_touches st_transform st_union st_within st_x
st_xmax st_xmin st_y st_ymax st_ymin st_z
"""

POSTGRES_FUNCTIONS = frozenset(
    " ".join(
        (
            _RESERVED,
            _CONDITIONS,
            _STRINGS,
            _BYTES,
            _MATHS,
            _DATES,
            _ENUMS_AND_IDS,
            _GEOMETRY,
            _NETWORK,
            _TEXT_SEARCH,
            _JSON,
            _ARRAYS_AND_RANGES,
            _AGGREGATES,
            _WINDOWS,
            _CATALOGUE,
            _TYPES,
            _TRIGRAMS_AND_SOUNDS,
            _VECTORS,
            _POSTGIS,
        )
    ).split()
)
"""Functions that compute a value or read the catalogue, and do nothing else.

Left out on purpose, with all that is not known: what runs text as a statement (`query_to_xml`, `ts_stat`, `ts_rewrite`,
`crosstab`, `dblink`), waits, locks or signals (`pg_sleep`, `pg_advisory_lock`, `pg_terminate_backend`), keeps state
(`nextval`, `lastval`, `setseed`, `set_config`, `txid_current`), reads or writes files and large objects (`pg_read_file`,
`lo_export`), tells about the server, its settings or other sessions (`current_setting`, `inet_server_addr`), shows source
text of functions (`pg_get_functiondef`), and XML, whose parser no deadline interrupts.
"""

COLUMNS_OF_FUNCTIONS = frozenset(["index", "key", "lexeme", "ordinality", "positions", "value", "weights"])
"""Names that the columns of table functions have of themselves."""

NAMED_AS_THEIR_ALIAS = frozenset(
    ["generate_series", "generate_subscripts", "regexp_matches", "regexp_split_to_table", "string_to_table"]
)
"""Functions whose only column in FROM is called as the function is there: of plain types, and without names of their own."""
