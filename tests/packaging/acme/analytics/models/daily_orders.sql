{{ config(materialized='incremental', incremental_strategy='delete+insert', unique_key='day') }}
select (_window_start at time zone 'UTC')::date as day, count(*) as orders, sum(amount) as amount
from {{ source('north', 'orders') }}
where _window_start >= '{{ var("start") }}' and _window_start < '{{ var("end") }}'
group by 1
